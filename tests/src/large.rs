//! A program of the size of the largest public ones, made here: rules one after another, each of which
//! looks at header fields, and where it matches counts, marks, and now and then rewrites the packet.

use std::fmt::Write as _;

/// What stands before the rules: maps, and the fields that rules look at.
const HEAD: &str = r#"#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

struct counter { __u64 packets, bytes; };
struct flow { __be32 saddr, daddr; __be16 sport, dport; __u32 proto; };
struct session { __u64 seen; __u32 mark, rule; };

struct { __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY); __uint(max_entries, 1024);
         __type(key, __u32); __type(value, struct counter); } counters SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_LRU_HASH); __uint(max_entries, 65536);
         __type(key, struct flow); __type(value, struct session); } sessions SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 4096);
         __type(key, __be32); __type(value, __u32); } blocked SEC(".maps");

SEC("xdp") int filter(struct xdp_md *ctx)
{
    void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
    struct ethhdr *eth = data;
    struct iphdr *ip = data + sizeof(*eth);
    struct udphdr *l4 = (void *)(ip + 1);
    struct flow flow = {};
    struct session *session;
    struct counter *c;
    __u64 length = end - data;
    __u32 mark = 0, index, *level;

    if ((void *)(l4 + 1) > end || eth->h_proto != bpf_htons(ETH_P_IP) || ip->ihl != 5)
        return XDP_PASS;
    flow.saddr = ip->saddr;
    flow.daddr = ip->daddr;
    flow.sport = l4->source;
    flow.dport = l4->dest;
    flow.proto = ip->protocol;
    session = bpf_map_lookup_elem(&sessions, &flow);
"#;

/// What stands behind them.
const TAIL: &str = r"
    if (!session) {
        struct session fresh = { .seen = 1, .mark = mark };

        bpf_map_update_elem(&sessions, &flow, &fresh, BPF_ANY);
    } else {
        session->seen++;
    }
    return mark & 1 ? XDP_TX : XDP_PASS;
}
";

/// The program in C, of this many rules; one is about 30 instructions.
#[must_use]
pub fn source(rules: u32) -> String {
    let mut text = String::from(HEAD);
    for rule in 0..rules {
        let (port, net) = (
            1 + rule * 37 % 65_000,
            rule.wrapping_mul(2_654_435_761) >> 12,
        );
        let _ = write!(
            text,
            "    if ((bpf_ntohl(flow.saddr) >> 12) == {net} && flow.proto == {} && bpf_ntohs(flow.dport) >= {port}) {{
        index = {};
        c = bpf_map_lookup_elem(&counters, &index);
        if (c) {{
            c->packets++;
            c->bytes += length;
            if (c->bytes > {}) mark |= {};
        }}\n",
            [6, 17, 1][rule as usize % 3],
            rule % 1024,
            1000 * (1 + u64::from(rule)),
            1_u32 << (rule % 31)
        );
        let more = match rule % 5 {
            0 => "        ip->ttl--;\n        ip->check += bpf_htons(0x0100);\n",
            1 => {
                "        level = bpf_map_lookup_elem(&blocked, &flow.saddr);\n        if (level && *level > mark) return XDP_DROP;\n"
            }
            2 => {
                "        if (session && session->mark != mark) { session->mark = mark; session->rule = index; }\n"
            }
            3 => "        if (length > 1000) return XDP_DROP;\n",
            _ => "        l4->dest = bpf_htons(bpf_ntohs(l4->dest) + 1);\n",
        };
        let _ = writeln!(text, "{more}    }}");
    }
    text.push_str(TAIL);
    text
}
