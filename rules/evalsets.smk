# The benchmarks' own files, and the sentences of theirs that training must not see.
# A unit is an archive, a file or the files of one language. Sets that are corpora too lie among the corpora; copies of
# the user's (`path`) and sets of the demo are used in place, except Tatoeba: the demo shows the fetcher with it.


rule fetch_evalset:
    input:
        w.embedded_unit,
        w.from_source(w.unit),
    output:
        update(w.unit),  # see rules/corpora.smk
    log:
        **w.logs(
            "fetch/{evalset}-{version}-{unit}", "data/fetch-evalset/{evalset}-{version}-{unit}"
        ),
    retries: 1  # as in fetch
    params:
        source=w.unit_source,
        out=folder_of_output,
    shell:
        "ems fetch-evalset --evalset {wildcards.evalset:q} --source={params.source:q} --code {wildcards.unit:q} --out"
        " {params.out:q} --costs {log.costs:q} --log {log.log:q}"


rule evalkeys:
    input:
        w.evalset_files(*w.against),
    output:
        w.eval_keys,
    log:
        **w.logs("evalkeys", "text/evalkeys"),
    params:
        **w.stage("evalkeys", w.evalkeys_modules),
        folders=w.evalset_folders(w.against),
    shell:
        "ems evalkeys {params.settings:q} --evalset {params.folders:q} --out {output:q} --costs {log.costs:q} --log"
        " {log.log:q}"
