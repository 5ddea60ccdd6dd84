/* nfs/portknock written by hand against the same table: what the emitted code is measured against. */
#include "context.h"
#include "state/hash.h"

#ifndef CAPACITY
#define CAPACITY 65536
#endif
#define PASS 32u

static const struct shape shape = { .key_bytes = 4, .value_bytes = 4, .capacity = CAPACITY };

struct mr_instance {
	struct hash sources;
};

struct slot {
	u64 key;
	u64 token;
	u32 valid;
};

/* The TCP header, or null. */
static inline const u8 *read_tcp(const struct mr_packet *pkt)
{
	const u8 *data = pkt->data, *ip = data + 14, *tcp;
	u32 header;

	if (ip + 20 > pkt->end || mr_load16(data + 12) != 8)
		return NULL;
	header = (ip[0] & 15) * 4;
	if (ip[0] >> 4 != 4 || header < 20 || __builtin_bswap16(mr_load16(ip + 2)) < header + 20)
		return NULL;
	if (ip[9] != 6 || mr_load16(ip + 6) & 0xff1f)
		return NULL;
	tcp = ip + header;
	return tcp + 20 <= pkt->end ? tcp : NULL;
}

static inline u64 source_of(const struct mr_packet *pkt) { return mr_load32(pkt->data + 26); }

MR_INLINE u32 knock(struct mr_instance *self, struct mr_packet *pkt, const struct slot *slot)
{
	const u8 *tcp = read_tcp(pkt);
	u32 first = 1, port, *state;
	u64 key, token;

	if (!tcp)
		return MR_XDP_DROP;
	port = __builtin_bswap16(mr_load16(tcp + 2));
	key = source_of(pkt);
	token = slot && slot->valid && slot->key == key ? slot->token : hash_token(&self->sources, &shape, &key);
	state = (u32 *)hash_map_lookup_elem(&self->sources, &shape, &key, token, pkt);
	if (!state) {
		if (port == 100)
			hash_map_update_elem(&self->sources, &shape, &key, token, (u8 *)&first, 0, pkt);
		return MR_XDP_DROP;
	}
	if (*state != 3)
		*state = port == 100 + *state ? *state + 1 : port == 100;
	return *state == 3 ? MR_XDP_TX : MR_XDP_DROP;
}

static void burst_plain(struct mr_instance *self, struct mr_packet *const *packets, u32 n)
{
	for (u32 i = 0; i < n; i++)
		mr_verdict_xdp(packets[i], knock(self, packets[i], NULL));
}

static void burst(struct mr_instance *self, struct mr_packet *const *packets, u32 n)
{
	struct slot slots[PASS];

	if (!hash_cold(&self->sources, &shape)) {
		burst_plain(self, packets, n);
		return;
	}
	while (n) {
		u32 count = n < PASS ? n : PASS;

		for (u32 i = 0; i < count; i++) {
			slots[i].valid = read_tcp(packets[i]) != NULL;
			if (!slots[i].valid)
				continue;
			slots[i].key = source_of(packets[i]);
			slots[i].token = hash_token(&self->sources, &shape, &slots[i].key);
			hash_prefetch(&self->sources, &shape, slots[i].token);
		}
		for (u32 i = 0; i < count; i++)
			if (slots[i].valid)
				hash_prefetch_entry(&self->sources, &shape, slots[i].token);
		for (u32 i = 0; i < count; i++)
			mr_verdict_xdp(packets[i], knock(self, packets[i], &slots[i]));
		packets += count;
		n -= count;
	}
}

static int create(struct mr_instance *self, const struct mr_config *config)
{
	return hash_create(&self->sources, &shape, config, NULL);
}

static void destroy(struct mr_instance *self) { hash_destroy(&self->sources, &shape); }

static void (*const bursts[])(struct mr_instance *, struct mr_packet *const *, u32) = { burst };
static void (*const bursts_plain[])(struct mr_instance *, struct mr_packet *const *, u32) = { burst_plain };

static const struct mr_module module = {
	.abi = MR_ABI,
	.programs = 1,
	.instance_bytes = sizeof(struct mr_instance),
	.instance_align = _Alignof(struct mr_instance),
	.create = create,
	.destroy = destroy,
	.burst = bursts,
	.burst_plain = bursts_plain,
};

__attribute__((visibility("default"))) const struct mr_module *millrace_module(void);

const struct mr_module *millrace_module(void) { return &module; }
