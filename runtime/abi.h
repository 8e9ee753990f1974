/* What generated code and the runtime know of each other: the only symbols, besides memcpy, memset and memmove, that a
   generated object may leave undefined. C, so that no compiler's name mangling enters. */
#pragma once
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* First error of a run. Generated code reports an index that is out of range through burin_report_index. */
typedef struct BurinStatus BurinStatus;

/* Runs tasks [begin, end) of a kernel. `buffers`: one pointer per parameter. `scratch`: the kernel's scratch bytes,
   64-byte aligned, private to the calling thread. */
typedef void (*BurinKernel)(void* const* buffers, int64_t begin, int64_t end, void* scratch, BurinStatus* status);

/* An index `index` outside 0..extent-1 at row `site` of the step's sites. Of several reports in one step, the one of the
   lowest (task, position within the task) is kept, whatever the threads do. Never returns an error to its caller. */
void burin_report_index(BurinStatus* status, int64_t task, int32_t site, int64_t index, int64_t extent);

#ifdef __cplusplus
}
#endif
