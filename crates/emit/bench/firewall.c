/* nfs/firewall written by hand against the same table, for IPv4 over at most two VLAN tags with the
 * same checks (what is not IPv4 is passed on, so measure with IPv4). */
#include "context.h"
#include "state/hash.h"

#ifndef CAPACITY
#define CAPACITY 65536
#endif
#define PASS 32u
#define VERDICT(kind, argument) ((u32)(kind) << 24 | (argument))

static const struct shape shape = {
	.key_bytes = 40, .value_bytes = 8, .capacity = CAPACITY, .expire_after = 60000000000ull,
};

struct mr_instance {
	struct hash flows;
};

struct slot {
	u64 key[5];
	u64 token;
	u32 valid;
};

enum outcome { NONE, OWN, BAD, FRAGMENT };

static inline u32 fold(u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (u32)((sum & 0xffff) + (sum >> 16));
}

/* The key of struct flow: two IPv4-mapped addresses, ports, protocol, version. */
static inline enum outcome find_flow(const struct mr_packet *pkt, u64 *key)
{
	const u8 *data = pkt->data, *ip, *at;
	u32 offset = 14, header, length, sport, dport, reversed = pkt->port == 1;
	u64 src, dst, sum;
	u16 type;

	if (data + 14 > pkt->end)
		return NONE;
	type = mr_load16(data + 12);
	for (int tags = 0; tags < 2 && (type == 0x0081 || type == 0xa888); tags++) {
		if (data + offset + 4 > pkt->end)
			return NONE;
		type = mr_load16(data + offset + 2);
		offset += 4;
	}
	if (type != 0x0008)
		return NONE;
	ip = data + offset;
	if (ip + 20 > pkt->end || ip[0] >> 4 != 4)
		return BAD;
	header = (ip[0] & 15) * 4;
	length = __builtin_bswap16(mr_load16(ip + 2));
	if (header < 20 || length < header || ip + length > pkt->end)
		return BAD;
	sum = 0;
	for (u32 i = 0; i < 20; i += 4)
		sum += mr_load32(ip + i);
	for (u32 i = 20; i < header; i += 4)
		sum += mr_load32(ip + i);
	if (fold(sum) != 0xffff)
		return BAD;
	if (ip[9] != 6 && ip[9] != 17)
		return NONE;
	if (mr_load16(ip + 6) & 0xff1f)
		return FRAGMENT;
	at = ip + header;
	if (ip[9] == 6) {
		u32 tcp;

		if (at + 20 > pkt->end)
			return BAD;
		tcp = (at[12] >> 4) * 4;
		if (tcp < 20 || header + tcp > length)
			return BAD;
	} else if (at + 8 > pkt->end || header + 8 > length) {
		return BAD;
	}
	src = (u64)mr_load32(ip + 12) << 32 | 0xffff0000;
	dst = (u64)mr_load32(ip + 16) << 32 | 0xffff0000;
	sport = mr_load16(at);
	dport = mr_load16(at + 2);
	key[0] = 0;
	key[1] = reversed ? dst : src;
	key[2] = 0;
	key[3] = reversed ? src : dst;
	key[4] = (reversed ? dport | sport << 16 : sport | dport << 16) | (u64)ip[9] << 32 | 4ull << 40;
	return OWN;
}

MR_INLINE u32 firewall(struct mr_instance *self, struct mr_packet *pkt, const struct slot *slot)
{
	u32 forward = VERDICT(MR_VERDICT_FORWARD, !pkt->port);
	u64 key[5], token, session = 0;

	switch (find_flow(pkt, key)) {
	case NONE:
		return forward;
	case BAD:
		return VERDICT(MR_VERDICT_DROP, 1);
	case FRAGMENT:
		return VERDICT(MR_VERDICT_DROP, 2);
	case OWN:
		break;
	}
	token = slot && slot->valid && mr_words_equal(key, slot->key, 5) ? slot->token :
									   hash_token(&self->flows, &shape, key);
	if (hash_map_refresh(&self->flows, &shape, key, token, pkt))
		return forward;
	if (pkt->port == 1)
		return VERDICT(MR_VERDICT_DROP, 3);
	return hash_map_put(&self->flows, &shape, key, token, (u8 *)&session, pkt) ? forward :
										    VERDICT(MR_VERDICT_DROP, 4);
}

static void burst_plain(struct mr_instance *self, struct mr_packet *const *packets, u32 n)
{
	if (n)
		hash_age(&self->flows, &shape, packets[0]->time);
	for (u32 i = 0; i < n; i++)
		mr_verdict_handlers(packets[i], firewall(self, packets[i], NULL));
}

static void burst(struct mr_instance *self, struct mr_packet *const *packets, u32 n)
{
	struct slot slots[PASS];

	if (!hash_cold(&self->flows, &shape)) {
		burst_plain(self, packets, n);
		return;
	}
	if (n)
		hash_age(&self->flows, &shape, packets[0]->time);
	while (n) {
		u32 count = n < PASS ? n : PASS;

		for (u32 i = 0; i < count; i++) {
			slots[i].valid = find_flow(packets[i], slots[i].key) == OWN;
			if (!slots[i].valid)
				continue;
			slots[i].token = hash_token(&self->flows, &shape, slots[i].key);
			hash_prefetch(&self->flows, &shape, slots[i].token);
		}
		for (u32 i = 0; i < count; i++)
			if (slots[i].valid)
				hash_prefetch_entry(&self->flows, &shape, slots[i].token);
		for (u32 i = 0; i < count; i++)
			mr_verdict_handlers(packets[i], firewall(self, packets[i], &slots[i]));
		packets += count;
		n -= count;
	}
}

static int create(struct mr_instance *self, const struct mr_config *config)
{
	return hash_create(&self->flows, &shape, config, NULL);
}

static void destroy(struct mr_instance *self) { hash_destroy(&self->flows, &shape); }

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
