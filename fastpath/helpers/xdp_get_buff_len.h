/* xdp_get_buff_len: the frame's length in bytes. */
#ifndef MR_HELPER_XDP_GET_BUFF_LEN_H
#define MR_HELPER_XDP_GET_BUFF_LEN_H

#include "../base.h"

MR_INLINE u64 helper_xdp_get_buff_len(struct mr_packet *pkt) { return (u64)(pkt->end - pkt->data); }

#endif
