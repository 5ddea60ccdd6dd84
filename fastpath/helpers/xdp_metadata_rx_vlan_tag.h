/* xdp_metadata_rx_vlan_tag: tags stay in the frame. */
#ifndef MR_HELPER_XDP_METADATA_RX_VLAN_TAG_H
#define MR_HELPER_XDP_METADATA_RX_VLAN_TAG_H

#include "../base.h"

MR_INLINE u64 helper_xdp_metadata_rx_vlan_tag(u8 *protocol, u8 *tag, struct mr_packet *pkt)
{
    (void)protocol;
    (void)tag;
    (void)pkt;
    return mr_errno(EOPNOTSUPP);
}

#endif
