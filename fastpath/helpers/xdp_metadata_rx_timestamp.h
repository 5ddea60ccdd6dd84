/* xdp_metadata_rx_timestamp: the packet's time, ns since the epoch. */
#ifndef MR_HELPER_XDP_METADATA_RX_TIMESTAMP_H
#define MR_HELPER_XDP_METADATA_RX_TIMESTAMP_H

#include "../base.h"

MR_INLINE u64 helper_xdp_metadata_rx_timestamp(u8 *timestamp, struct mr_packet *pkt)
{
    mr_store64(timestamp, pkt->time);
    return 0;
}

#endif
