// CO-RE relocations of every kind, for the fuzzer of type information.
#include <linux/bpf.h>
#include <linux/ip.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

struct inner {
    unsigned long long wide;
    unsigned low : 5, high : 11;
    int list[4];
};

struct outer {
    int first;
    union {
        struct inner named;
        struct {
            int plain;
        };
    };
} keep;

struct outer___flavor {
    struct inner named;
    int plain, gone;
} __attribute__((preserve_access_index));

SEC("xdp") int core(struct xdp_md *ctx)
{
    struct outer *o = (void *)(long)ctx->data;
    unsigned long long sum = keep.first;

    if ((void *)(o + 1) > (void *)(long)ctx->data_end)
        return XDP_PASS;
    sum += bpf_core_field_exists(struct outer___flavor, gone);
    if (bpf_core_field_exists(struct outer___flavor, gone))
        sum += ((struct outer___flavor *)o)->gone;
    sum += bpf_core_field_offset(struct outer___flavor, named.list[2]);
    sum += bpf_core_field_size(struct iphdr, saddr);
    sum += BPF_CORE_READ_BITFIELD(&o->named, high);
    sum += bpf_core_type_id_local(struct outer) > 0;
    sum += bpf_core_type_id_kernel(struct iphdr) > 0;
    sum += bpf_core_type_exists(struct iphdr) + bpf_core_type_matches(struct iphdr);
    sum += bpf_core_type_size(struct iphdr);
    sum += bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_redirect);
    sum += bpf_core_enum_value(enum xdp_action, XDP_TX);
    return sum & 3;
}

char _license[] SEC("license") = "GPL";
