//! Bytes and borders of the packet, and what the NIC says of it.

use super::Arg::{Bytes, Context, In, InOut, Read, Scalar, Write};
use super::{STATUS, family, helper, within};

family! {
    /// `xdp_adjust_head`: moves the packet's first byte.
    ///
    /// `long bpf_xdp_adjust_head(xdp_md, delta)`: negative makes room, positive cuts. Returns 0, or `-EINVAL`
    /// if that leaves less than an Ethernet header, exceeds the headroom, or makes a frame longer than 65535
    /// bytes. Pointers into the packet are invalid afterwards, whatever it returned.
    XDP_ADJUST_HEAD = helper(44, "xdp_adjust_head", &[Context, Scalar], STATUS).moves_packet();

    /// `xdp_adjust_meta`: moves the start of the metadata before the packet.
    ///
    /// `long bpf_xdp_adjust_meta(xdp_md, delta)`. Returns 0; `-EACCES` if the metadata would be longer than
    /// 252 bytes or not a multiple of 4; `-EINVAL` if it exceeds the headroom or begins behind `data`.
    /// Pointers into the packet are invalid afterwards, whatever it returned.
    XDP_ADJUST_META = helper(54, "xdp_adjust_meta", &[Context, Scalar], STATUS).moves_packet();

    /// `xdp_adjust_tail`: moves the packet's end.
    ///
    /// `long bpf_xdp_adjust_tail(xdp_md, delta)`: negative cuts, positive appends zeros. Returns 0, or
    /// `-EINVAL` if that leaves less than an Ethernet header, exceeds the room behind the packet, or makes
    /// a frame longer than 65535 bytes. Pointers into the packet are invalid afterwards, whatever it
    /// returned.
    XDP_ADJUST_TAIL = helper(65, "xdp_adjust_tail", &[Context, Scalar], STATUS).moves_packet();

    /// `xdp_get_buff_len`: the packet's length in bytes.
    ///
    /// `u64 bpf_xdp_get_buff_len(xdp_md)`. Packets are in one piece and at most 65535 bytes long.
    XDP_GET_BUFF_LEN = helper(188, "xdp_get_buff_len", &[Context], within(0, 0xffff));

    /// `xdp_load_bytes`: copies bytes out of the packet.
    ///
    /// `long bpf_xdp_load_bytes(xdp_md, offset, buf, len)`. Returns 0; `-EFAULT` if offset or length is above
    /// 65535; `-EINVAL` if the packet is too short. After an error the buffer holds zeros.
    XDP_LOAD_BYTES = helper(
        189,
        "xdp_load_bytes",
        &[Context, Scalar, Write { nullable: false }, Bytes { zero: false }],
        STATUS,
    );

    /// `xdp_store_bytes`: copies bytes into the packet.
    ///
    /// `long bpf_xdp_store_bytes(xdp_md, offset, buf, len)`. Returns 0; `-EFAULT` if offset or length is above
    /// 65535; `-EINVAL` if the packet is too short. After an error the packet is unchanged. Pointers into
    /// the packet stay valid.
    XDP_STORE_BYTES = helper(
        190,
        "xdp_store_bytes",
        &[Context, Scalar, Read { nullable: false }, Bytes { zero: false }],
        STATUS,
    ).writes_packet();

    /// `packet_find`: where bytes occur in the packet.
    ///
    /// `s32 packet_find(ctx, offset, bytes, size)`: the offset of the first occurrence that begins at `offset` or behind it; -1:
    /// there is none. Letters match in one case only.
    PACKET_FIND = helper(
        0x1_0080,
        "packet_find",
        &[Context, Scalar, Read { nullable: false }, Bytes { zero: false }],
        within(-1, 0xffff),
    );

    /// `xdp_flow_lookup`: the kernel function that finds a connection in a flow table of netfilter.
    ///
    /// `struct flow_offload_tuple_rhash *bpf_xdp_flow_lookup(ctx, struct bpf_fib_lookup *tuple,
    /// struct bpf_flowtable_opts *opts, u32 opts_len)`. No flow table is set up here, so it is always null, as
    /// in a kernel where none is; `opts->error` is `-ENOENT`, or `-EINVAL` (a length other than 4),
    /// `-EAFNOSUPPORT`.
    XDP_FLOW_LOOKUP =
        helper(0x20000, "xdp_flow_lookup", &[Context, In(64), InOut(4), Scalar], within(0, 0));

    /// `xdp_metadata_rx_timestamp`: the kernel function that says when the interface received the packet.
    ///
    /// `int bpf_xdp_metadata_rx_timestamp(ctx, u64 *timestamp)`. Writes the packet's time, ns, and returns 0.
    XDP_METADATA_RX_TIMESTAMP =
        helper(0x20001, "xdp_metadata_rx_timestamp", &[Context, InOut(8)], within(0, 0)).time();

    /// `xdp_metadata_rx_hash`: the kernel function for the RSS hash that the interface has computed.
    ///
    /// `int bpf_xdp_metadata_rx_hash(ctx, u32 *hash, enum xdp_rss_hash_type *rss_type)`. Packets come without
    /// one: `-EOPNOTSUPP`, and nothing is written.
    XDP_METADATA_RX_HASH =
        helper(0x20002, "xdp_metadata_rx_hash", &[Context, InOut(4), InOut(4)], within(-95, -95));

    /// `xdp_metadata_rx_vlan_tag`: the kernel function for the VLAN tag that the interface has taken off.
    ///
    /// `int bpf_xdp_metadata_rx_vlan_tag(ctx, __be16 *vlan_proto, u16 *vlan_tci)`. Tags stay in the frame:
    /// `-EOPNOTSUPP`, and nothing is written.
    XDP_METADATA_RX_VLAN_TAG = helper(
        0x20003,
        "xdp_metadata_rx_vlan_tag",
        &[Context, InOut(2), InOut(2)],
        within(-95, -95),
    );
}
