/*
 * compute/kernels/bad.c - kernels that are wrong in one way each: the build
 * defines BAD_something and NAME.
 */
#include <pyramid/kernel.h>

#include <string.h>

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

#ifdef BAD_FAILS /* where it meets a 13 */
static int
run(const pyr_kernel_job *job)
{
    const int32_t *in = (const int32_t *)job->in;
    memcpy(job->out, in, job->cells * sizeof *in);
    for (uint64_t i = 0; i < job->cells; i++)
        if (in[i] == 13) {
            strncpy(job->message, "13 is bad luck", job->room - 1);
            return 7;
        }
    return 0;
}
#else
static int
run(const pyr_kernel_job *job)
{
    (void)job;
    return 0;
}
#endif

#ifdef BAD_SYMBOL
#define pyramid_kernel something_else
PYR_KERNEL_EXPORT extern const pyr_kernel something_else;
#endif

PYR_KERNEL_EXPORT const pyr_kernel pyramid_kernel = {
    .size = sizeof(pyr_kernel),
#ifdef BAD_ABI
    .abi = 77,
#else
    .abi = PYR_KERNEL_ABI,
#endif
#ifdef BAD_NAME
    .name = "innocent",
#else
    .name = TEXT(NAME),
#endif
#ifndef BAD_VERSION
    .version = "1.0",
#endif
#ifdef BAD_HALO
    .halo = PYR_KERNEL_MAX_HALO + 1,
#endif
#ifdef BAD_TYPES
    .types = 0,
#else
    .types = PYR_KERNEL_ALL_TYPES,
#endif
    .run = run,
};
