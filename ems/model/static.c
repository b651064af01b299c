/* Two loops of static.py, which ctypes calls without Python's lock. NumPy does the same where this
   file was not compiled, to the last bit: no flag of the compiler may reorder the additions or
   contract them with products. */

#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <stdint.h>
#include <string.h>

#if defined(_MSC_VER)
#define EXPORTED __declspec(dllexport)
#define PREFETCH(address) (void)(address)
#define restrict __restrict
#else
#define EXPORTED
#define PREFETCH(address) __builtin_prefetch(address)
#endif
#define AHEAD 8 /* rows */
#define LINE 64 /* bytes that a processor fetches together */

/* Writes the sum of counts[i] rows of a table, the next ones of rows[many], for each of `words`
   words to out + places[i] * stride. Each number is a chain of additions in this order. Rows ahead
   are prefetched, since the table is larger than the processor's cache. A row has `width` numbers;
   VALUE(r, j) is one of row r. */
#define SUMS(NAME, TYPE, VALUE)                                                                  \
    EXPORTED void NAME(const TYPE *restrict table, const float *restrict scales, int64_t width,  \
                       const int64_t *restrict rows, int64_t many,                               \
                       const int64_t *restrict counts, int64_t words, float *restrict out,       \
                       int64_t stride, const int64_t *restrict places)                           \
    {                                                                                            \
        const int64_t *end = rows + many;                                                        \
        for (int64_t i = 0; i < words; i++) {                                                    \
            float *restrict sum = out + places[i] * stride;                                      \
            memset(sum, 0, width * sizeof(float));                                               \
            for (int64_t left = counts[i], step; left > 0; left -= step, rows += step) {         \
                step = left < 4 ? 1 : 4; /* four rows at once need one store */                  \
                for (int64_t k = AHEAD; k < AHEAD + step && rows + k < end; k++)                 \
                    for (size_t at = 0; at < width * sizeof(TYPE); at += LINE)                   \
                        PREFETCH((const char *)(table + rows[k] * width) + at);                  \
                if (step == 1) {                                                                 \
                    const int64_t a = rows[0];                                                   \
                    for (int64_t j = 0; j < width; j++)                                          \
                        sum[j] += VALUE(a, j);                                                   \
                } else {                                                                         \
                    const int64_t a = rows[0], b = rows[1], c = rows[2], d = rows[3];            \
                    for (int64_t j = 0; j < width; j++)                                          \
                        sum[j] = (((sum[j] + VALUE(a, j)) + VALUE(b, j)) + VALUE(c, j))          \
                                 + VALUE(d, j);                                                  \
                }                                                                                \
            }                                                                                    \
        }                                                                                        \
    }

#define FLOAT(r, j) table[r * width + j]
#define INT8(r, j) (table[r * width + j] * scales[r])
SUMS(sums_float32, float, FLOAT)
SUMS(sums_int8, int8_t, INT8)

/* Writes the table row of each n-gram of `words` words, of lengths[i] ids each, and their counts.
   `Ngrams` of table.py explains the steps, and hashing.py the numbers. `longest` is a multiple of
   8; `spelt` has room for the letters of the longest word and three gaps. */
EXPORTED void ngrams(const uint8_t *letters, int64_t longest, int64_t gap, int64_t most,
                     uint64_t base, uint64_t mix, uint64_t positive, int64_t shift,
                     uint64_t buckets, const int64_t *ids, const int64_t *lengths, int64_t words,
                     uint8_t *spelt, int64_t *counts, int64_t *rows)
{
    const int mask = (buckets & (buckets - 1)) == 0;
    for (int64_t i = 0; i < words; ids += lengths[i++]) {
        int64_t size = 0, count = 0;
        if (lengths[i])
            spelt[size++] = gap;
        for (int64_t k = 0; k < lengths[i]; k++)
            for (int64_t at = 0; at < longest; at += 8) {
                const uint8_t *eight = letters + ids[k] * longest + at;
                if (memcmp(eight, "\0\0\0\0\0\0\0", 8))
                    for (int j = 0; j < 8; j++) {
                        spelt[size] = eight[j];
                        size += eight[j] != 0;
                    }
            }
        spelt[size] = spelt[size + 1] = gap;
        for (int64_t first = 0; first < size; first++) {
            uint64_t hash = spelt[first];
            for (int64_t more = 1; more < most; more++) {
                if (spelt[first + more - 1] == gap && (more > 1 || spelt[first + 1] == gap))
                    break; /* a gap inside */
                hash = hash * base + spelt[first + more];
                const uint64_t mixed = (hash * mix & positive) >> shift;
                *rows++ = mask ? mixed & (buckets - 1) : mixed % buckets;
                count++;
            }
        }
        counts[i] = count;
    }
}

/* ctypes needs no module, but whoever imports all modules of a package does. */
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_static", NULL, -1, NULL};

PyMODINIT_FUNC PyInit__static(void) { return PyModule_Create(&module); }
