/* xdp_flow_lookup: null, as in a kernel without a flow table; `options` is { s32 error }. The tuple is a
 * struct bpf_fib_lookup, whose first byte is the family. */
#ifndef MR_HELPER_XDP_FLOW_LOOKUP_H
#define MR_HELPER_XDP_FLOW_LOOKUP_H

#include "../base.h"

MR_INLINE u64 helper_xdp_flow_lookup(u8 *tuple, u8 *options, u64 length, struct mr_packet *pkt)
{
    int error = (u32)length != 4 ? EINVAL : tuple[0] != 2 && tuple[0] != 10 ? EAFNOSUPPORT : ENOENT;

    (void)pkt;
    mr_store32(options, (u32)-error);
    return 0;
}

#endif
