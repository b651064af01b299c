/* Sums of rows of a table, one sum per word, without the copies that NumPy makes.

   Each number is a chain of additions in the order of the rows, as in `Table._add_in_numpy`, so
   that both have the same bits; no flag of the compiler may reorder or contract them. Rows ahead
   are prefetched, since the table is larger than the processor's cache. ctypes calls it without
   Python's lock. */

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

/* Writes the sum of the next counts[i] of rows[many] to out + places[i] * stride, of each of
   `words` words. A number of row r is VALUE(r, j); the row has `width` of them. */
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

EXPORTED void *PyInit__bags(void) { return NULL; } /* Windows' linker asks for it */
