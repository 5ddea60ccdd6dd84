//! The walks to the headers, and what stands in front of and behind a function.

use std::fmt::Write as _;

use crate::stateful::case::{Family, HeaderLength, Parse, Protocol};

/// Where the headers of IPv4 are looked at; `other` is what happens to all other packets.
pub(super) fn v4(parse: &Parse, data: &str, end: &str, other: &str) -> String {
    let handlers = data.starts_with('p');
    let mut out = format!("\t__u8 *data = (void *)(long){data}, *end = (void *)(long){end};\n");
    let swap = if handlers { "htons" } else { "bpf_htons" };
    let mut refuse = |condition: String| {
        let _ = writeln!(out, "\tif ({condition})\n\t\t{other}");
    };
    refuse("data + 34 > end".to_owned());
    refuse(format!("*(__u16 *)(data + 12) != {swap}(0x0800)"));
    out.push_str("\tstruct iphdr *ip = (void *)(data + 14);\n");
    let mut refuse = |condition: &str| {
        let _ = writeln!(out, "\tif ({condition})\n\t\t{other}");
    };
    if parse.version {
        refuse("ip->version != 4");
    }
    if parse.length == HeaderLength::Fixed {
        refuse("ip->ihl != 5");
    }
    if parse.fragments {
        refuse(if handlers {
            "ip->frag_off & htons(0x3fff)"
        } else {
            "ip->frag_off & bpf_htons(0x3fff)"
        });
    }
    match parse.protocol {
        Protocol::Udp => refuse("ip->protocol != 17"),
        Protocol::Both => refuse("ip->protocol != 17 && ip->protocol != 6"),
        Protocol::Ignored | Protocol::NoPorts => {}
    }
    if parse.protocol != Protocol::NoPorts {
        let at = match parse.length {
            HeaderLength::Walked => "14 + ip->ihl * 4",
            _ => "34",
        };
        let _ = writeln!(out, "\t__u16 *l4 = (void *)(data + {at});");
        let _ = writeln!(out, "\tif ((__u8 *)(l4 + 2) > end)\n\t\t{other}");
    }
    out
}

/// The same for IPv6, and for Ethernet alone.
pub(super) fn six(parse: &Parse, data: &str, end: &str, other: &str) -> String {
    let mut out = format!("\t__u8 *data = (void *)(long){data}, *end = (void *)(long){end};\n");
    let mut refuse = |condition: &str| {
        let _ = writeln!(out, "\tif ({condition})\n\t\t{other}");
    };
    if parse.family == Family::Ethernet {
        refuse("data + 34 > end");
        out.push_str("\t__u32 src = data[11], dst = data[5], proto = data[12], ttl = data[13];\n");
        return out;
    }
    refuse("data + 58 > end");
    refuse("data[12] != 0x86 || data[13] != 0xdd");
    if parse.version {
        refuse("data[14] >> 4 != 6");
    }
    match parse.protocol {
        Protocol::Udp => refuse("data[20] != 17"),
        Protocol::Both => refuse("data[20] != 17 && data[20] != 6"),
        Protocol::Ignored | Protocol::NoPorts => {}
    }
    out.push_str("\t__u32 *src6 = (void *)(data + 22), *dst6 = (void *)(data + 38);\n");
    out.push_str("\t__u32 src = src6[3], dst = dst6[3], proto = data[20], ttl = data[21];\n");
    out.push_str("\t__u16 *l4 = (void *)(data + 54);\n");
    out
}

pub(super) const V4_FIELDS: &str =
    "\t__u32 src = ip->saddr, dst = ip->daddr, proto = ip->protocol, ttl = ip->ttl;\n";

pub(super) const XDP: &str = "\
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

";

pub(super) const HANDLERS: &str = "\
#include <linux/ip.h>
#include <millrace/nf.h>

PORTS(LAN, WAN);

";

pub(super) const GATHER_BEGIN: &str = "\
struct fields { __u32 src, dst; __u16 sport, dport; __u8 proto, ttl; };

static __always_inline int gather(struct xdp_md *ctx, struct fields *f)
{
";

/// The allocator and what finds its entries. With `few` numbers, less than the NIC's table has indexes, they cannot come
/// home to all of these (R6), so that what packets are held against decides (R5).
pub(super) fn declared(few: bool) -> String {
    match few {
        true => LEASED.replace("capacity = 1024", "capacity = 64") + CUT,
        false => LEASED.to_owned(),
    }
}

pub(super) const CUT: &str =
    "static long (*adjust_tail)(struct packet *p, int delta) = (void *)65;\n\n";

pub(super) const LEASED: &str = "\
struct tuple5 { __u32 src, dst; __u16 sport, dport; __u32 proto; };
struct number { __u64 n; };
struct lease { __u32 host, remote; __u16 port, rport; __u32 misses; };
MAP(known, struct tuple5, struct number, .capacity = 4096);
ALLOCATOR(leases, struct lease, .capacity = 1024, .first = 1000);

";

pub(super) const TAIL: &str = "\
SEC(\"xdp\")
int second(struct xdp_md *ctx)
{
	return XDP_DROP;
}

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__array(values, int (void *));
} programs SEC(\".maps\") = { .values = { [1] = (void *)&second } };

";
