/* xdp_metadata_rx_hash: packets come without one. */
#ifndef MR_HELPER_XDP_METADATA_RX_HASH_H
#define MR_HELPER_XDP_METADATA_RX_HASH_H

#include "../base.h"

MR_INLINE u64 helper_xdp_metadata_rx_hash(u8 *hash, u8 *type, struct mr_packet *pkt)
{
    (void)hash;
    (void)type;
    (void)pkt;
    return mr_errno(EOPNOTSUPP);
}

#endif
