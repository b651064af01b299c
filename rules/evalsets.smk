# The files of evaluation sets, and the keys of their sentences, which training must not see.
# A unit is an archive, a file or the files of one language. Sets that are also corpora are fetched as corpora. The
# user's copies (`path`) and sets of the demo are used in place, except Tatoeba, which demonstrates the fetcher.
AGAINST = w.experiment.decontaminate.against


rule fetch_evalset:
    input:
        job.embedded_unit,
    output:
        w.fetched_set,
    log:
        **w.logs("fetch/{evalset}-{version}", "data/fetch-evalset/{evalset}-{version}"),
    retries: 1  # as in fetch
    params:
        source=job.unit_source,
        units=job.units,
        out=f"{DATA}/evalsets/{{evalset}}/{{version}}",
    shell:
        "ems fetch-evalset --evalset {wildcards.evalset:q} --source={params.source:q} --code {params.units:q} --out"
        " {params.out:q} --receipt {output:q} --costs {log.costs:q} --log {log.log:q}"


rule evalkeys:
    input:
        w.evalset_files(*AGAINST),
    output:
        w.eval_keys,
    log:
        **w.logs("evalkeys", "text/"),
    params:
        **w.stage("evalkeys", evalkeys_modules(AGAINST)),
        folders=w.evalset_folders(AGAINST),
    shell:
        "ems evalkeys {params.settings:q} --evalset {params.folders:q} --out {output:q} --costs {log.costs:q} --log"
        " {log.log:q}"
