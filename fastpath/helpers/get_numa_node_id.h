/* get_numa_node_id: workers count as one NUMA node, 0. */
#ifndef MR_HELPER_GET_NUMA_NODE_ID_H
#define MR_HELPER_GET_NUMA_NODE_ID_H

#include "../base.h"

MR_INLINE u64 helper_get_numa_node_id(struct mr_packet *pkt)
{
    (void)pkt;
    return 0;
}

#endif
