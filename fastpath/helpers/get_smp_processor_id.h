/* get_smp_processor_id: the worker, from 0. */
#ifndef MR_HELPER_GET_SMP_PROCESSOR_ID_H
#define MR_HELPER_GET_SMP_PROCESSOR_ID_H

#include "../base.h"

MR_INLINE u64 helper_get_smp_processor_id(struct mr_packet *pkt) { return pkt->cpu; }

#endif
