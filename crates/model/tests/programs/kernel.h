/* As much of the kernel's declarations as these programs need. */
typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;

struct xdp_md {
	__u32 data;
	__u32 data_end;
	__u32 data_meta;
	__u32 ingress_ifindex;
	__u32 rx_queue_index;
	__u32 egress_ifindex;
};

enum xdp_action { XDP_ABORTED, XDP_DROP, XDP_PASS, XDP_TX, XDP_REDIRECT };

#define SEC(name) __attribute__((section(name), used))
#define __uint(name, val) int(*name)[val]
#define __type(name, val) val *name
#define __array(name, val) val *name[]

enum {
	HASH = 1, ARRAY = 2, PROG_ARRAY = 3, PERF_EVENT_ARRAY = 4, PERCPU_ARRAY = 6, LRU_HASH = 9, LPM_TRIE = 11,
	ARRAY_OF_MAPS = 12, HASH_OF_MAPS = 13, DEVMAP = 14, QUEUE = 22, STACK = 23, RINGBUF = 27, BLOOM_FILTER = 30,
};

#define MAP(name, kind, capacity, key_type, value_type) \
	struct {                                        \
		__uint(type, kind);                     \
		__uint(max_entries, capacity);          \
		__type(key, key_type);                  \
		__type(value, value_type);              \
	} name SEC(".maps")

enum { BPF_ANY, BPF_NOEXIST, BPF_EXIST };

static void *(*lookup)(void *map, const void *key) = (void *)1;
static long (*update)(void *map, const void *key, const void *value, __u64 flags) = (void *)2;
static long (*delete)(void *map, const void *key) = (void *)3;
static __u64 (*ktime)(void) = (void *)5;
static __u32 (*cpu)(void) = (void *)8;
static long (*tail_call)(void *ctx, void *map, __u32 index) = (void *)12;
static long (*perf_output)(void *ctx, void *map, __u64 flags, void *data, __u64 size) = (void *)25;
static long (*csum_diff)(void *from, __u32 from_size, void *to, __u32 to_size, __u32 seed) = (void *)28;
static long (*adjust_head)(struct xdp_md *ctx, int delta) = (void *)44;
static long (*redirect_map)(void *map, __u64 key, __u64 flags) = (void *)51;
static long (*adjust_meta)(struct xdp_md *ctx, int delta) = (void *)54;
static long (*adjust_tail)(struct xdp_md *ctx, int delta) = (void *)65;
static long (*push)(void *map, const void *value, __u64 flags) = (void *)87;
static long (*pop)(void *map, void *value) = (void *)88;
static long (*peek)(void *map, void *value) = (void *)89;
static void *(*reserve)(void *map, __u64 size, __u64 flags) = (void *)131;
static void (*submit)(void *record, __u64 flags) = (void *)132;
static long (*for_each)(void *map, void *function, void *context, __u64 flags) = (void *)164;
static long (*buff_len)(struct xdp_md *ctx) = (void *)188;
static long (*load_bytes)(struct xdp_md *ctx, __u32 offset, void *to, __u32 bytes) = (void *)189;
static long (*store_bytes)(struct xdp_md *ctx, __u32 offset, void *from, __u32 bytes) = (void *)190;

#define BEGIN(ctx) ((__u8 *)(long)(ctx)->data)
#define END(ctx) ((__u8 *)(long)(ctx)->data_end)
#define META(ctx) ((__u8 *)(long)(ctx)->data_meta)

/* Keeps the compiler from making one call of two. */
#define APART(number) asm volatile("" ::"i"(number))
