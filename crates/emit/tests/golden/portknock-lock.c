/* portknock: emitted by millrace, treatment lock (workers share state).
 *
 * portknock: every packet, XDP
 * sources: hash
 *
 * How to read it: crates/emit/README.md, and codegen.h for the names of locals.
 */
#define MR_NO_TARGETS 1
#include "codegen.h"
#include "state/hash.h"
#include "sync/lock.h"
#include "sync/hash.h"

/* sources: hash, key 4 B, value 4 B, capacity 65536 */
static const struct shape shape0_sources = { .key_bytes = 4u, .value_bytes = 4u, .capacity = 65536u, .shared = 1u };

/* One for all workers. */
struct mr_shared {
	struct lock lock;
	struct hash o0_sources;
};

struct mr_instance {
	struct mr_shared *shared;
	u32 core; /* which of the workers that share it */
};

/* struct slot {: as before */

/* MR_INLINE int slot_holds(const struct slot *slot, u32 site, const u64 *key, u32 words): as before */

--- MR_INLINE void run0_portknock
+++ static __attribute__((noinline)) void run0_portknock
@@ -1,3 +1,3 @@
 /* portknock: every packet, XDP */
-MR_INLINE void run0_portknock(struct mr_instance *self, struct mr_packet *pkt)
+static __attribute__((noinline)) void run0_portknock(struct mr_instance *self, struct mr_packet *pkt)
 {
@@ -63,3 +63,3 @@
 		u64 key[] = { mr_load32(s0_4) };
-		p0_0 = hash_map_lookup_elem(&self->o0_sources, &shape0_sources, key, hash_token(&self->o0_sources, &shape0_sources, key), pkt);
+		p0_0 = hash_map_lookup_elem(&self->shared->o0_sources, &shape0_sources, key, hash_token(&self->shared->o0_sources, &shape0_sources, key), pkt);
 	}
@@ -79,3 +79,3 @@
 		memcpy(value, s0_8, 4);
-		hash_map_update_elem(&self->o0_sources, &shape0_sources, key, hash_token(&self->o0_sources, &shape0_sources, key), value, r4_0, pkt);
+		hash_map_update_elem(&self->shared->o0_sources, &shape0_sources, key, hash_token(&self->shared->o0_sources, &shape0_sources, key), value, r4_0, pkt);
 	}

/* portknock, as long as it changes nothing that workers share. */
MR_INLINE int reader0_portknock(struct mr_instance *self, struct mr_packet *pkt)
{
	_Alignas(8) u8 s0_8[4];
	_Alignas(8) u8 s0_4[4];
	u64 r0_0, r1_0, r2_0, r3_0, r4_0, r5_0, r6_0;
	u8 *p0_0, *p1_0, *p2_0, *p3_0, *p4_0;

#line 31 "nfs/portknock/portknock.c" /* __u8 *data = (__u8 *)(long)ctx->data; */
	p2_0 = pkt->data;                                        /* 0: r2 = *(u32 *)(r1 +0) */
#line 32
	p1_0 = pkt->end;                                         /* 1: r1 = *(u32 *)(r1 +4) */
#line 38 /* if ((__u8 *)(ip + 1) > end) */
	p3_0 = p2_0;                                             /* 2: r3 = r2 */
	p3_0 += 34;                                              /* 3: r3 += 34 */
	if (p3_0 > p1_0) goto L30;                               /* 4: if r3 > r1 goto 30 */
#line 41 /* if (*(__be16 *)(data + 12) != bpf_htons(ETH_P_IP)) */
	r3_0 = *(const mr_u16 *)(p2_0 + 12);                     /* 5: r3 = *(u16 *)(r2 +12) */
	if ((u32)r3_0 != 8) goto L30;                            /* 6: if w3 != 8 goto 30 */
#line 43 /* header = (*(__u8 *)ip & 0x0f) * 4; */
	r3_0 = *(const volatile u8 *)(p2_0 + 14);                /* 7: r3 = *(u8 *)(r2 +14) */
#line 45 /* if (*(__u8 *)ip >> 4 != 4 || header < sizeof(*ip) || */
	r4_0 = (u32)r3_0;                                        /* 8: w4 = w3 */
	r4_0 = (u32)r4_0 & 240;                                  /* 9: w4 &= 240 */
	if ((u32)r4_0 != 64) goto L30;                           /* 10: if w4 != 64 goto 30 */
	r3_0 = (u32)r3_0 << 2;                                   /* 11: w3 <<= 2 */
	r3_0 = (u32)r3_0 & 60;                                   /* 12: w3 &= 60 */
	if ((u32)r3_0 < 20) goto L30;                            /* 13: if w3 < 20 goto 30 */
	r4_0 = *(const volatile mr_u16 *)(p2_0 + 16);            /* 14: r4 = *(u16 *)(r2 +16) */
	r4_0 = __builtin_bswap16((u16)r4_0);                     /* 15: r4 = bswap16 r4 */
	/* ... 69 lines ... */
	if ((u32)r2_0 == 3) return mr_verdict_xdp(pkt, r0_0), LOCK_DONE; /* 64: if w2 == 3 goto 31 */
	goto L30;                                                /* 65: goto 30 */
L64:
	r0_0 = 1;                                                /* 66: w0 = 1 */
	r2_0 = 1;                                                /* 67: w2 = 1 */
#line 82 /* *state = port == FIRST_PORT ? KNOCK_2 : KNOCK_1; */
	if ((u32)r6_0 == 0x6400u) goto L68;                      /* 68: if w6 == 25600 goto 70 */
	r2_0 = 0;                                                /* 69: w2 = 0 */
L68:
	if (*(mr_u32 *)p1_0 != (u32)r2_0) return LOCK_RESTART;   /* 70: *(u32 *)(r1 +0) = r2 */
	return mr_verdict_xdp(pkt, r0_0), LOCK_DONE;             /* 71: goto 31 */
}

--- static inline void prefetch0_portknock
+++ static inline void prefetch0_portknock
@@ -62,3 +62,3 @@
 		u64 key[] = { mr_load32(s0_4) };
-		slot->token = hash_token(&self->o0_sources, &shape0_sources, key);
+		slot->token = hash_token(&self->shared->o0_sources, &shape0_sources, key);
 		memcpy(slot->key, key, sizeof(key));
@@ -68,3 +68,3 @@
 		slot->number[0] = r6_0;
-		hash_prefetch(&self->o0_sources, &shape0_sources, slot->token);
+		hash_prefetch(&self->shared->o0_sources, &shape0_sources, slot->token);
 		return;

/* portknock from its first keyed operation on. */
MR_INLINE int resume0_portknock(struct mr_instance *self, struct mr_packet *pkt, const struct slot *slot)
{
	_Alignas(8) u8 s0_8[4];
	_Alignas(8) u8 s0_4[4];
	u64 r0_0, r2_0, r3_0, r4_0, r6_0;
	u8 *p0_0, *p1_0;

	memcpy(s0_8, slot->stack + 0, 4);
	memcpy(s0_4, slot->stack + 4, 4);
	r6_0 = slot->number[0];
	goto L39;
L39:
#line 70 "nfs/portknock/portknock.c" /* state = bpf_map_lookup_elem(&sources, &source); */
	{                                                        /* 40: call map_lookup_elem#1 */
		u64 key[1];
		memcpy(key, slot->key, sizeof(key));
		p0_0 = hash_map_lookup_elem(&self->shared->o0_sources, &shape0_sources, key, slot->token, pkt);
	}
	p1_0 = p0_0;                                             /* 41: r1 = r0 */
#line 71
	if (p1_0) goto L52;                                      /* 42: if r1 != 0 goto 54 */
#line 71 /* if (!state) { */
	r0_0 = 1;                                                /* 43: w0 = 1 */
#line 72
	if ((u32)r6_0 != 0x6400u) return mr_verdict_xdp(pkt, r0_0), LOCK_DONE; /* 44: if w6 != 25600 goto 31 */
#line 73
	r4_0 = 0;                                                /* 51: r4 = 0 */
#line 73 /* bpf_map_update_elem(&sources, &source, &first, BPF_ANY); */
	{                                                        /* 52: call map_update_elem#2 */
		u64 key[] = { mr_load32(s0_4) };
		_Alignas(8) u8 value[4];
		memcpy(value, s0_8, 4);
		u64 const found = hash_reader_map_update_elem(&self->shared->o0_sources, &shape0_sources, key, hash_token(&self->shared->o0_sources, &shape0_sources, key), value, r4_0, pkt);
		if (mr_unlikely(found == MR_RESTART_NUMBER)) return LOCK_RESTART;
	}
L30:
#line 53 /* if ((__u8 *)(tcp + 1) > end) */
	r0_0 = 1;                                                /* 30: w0 = 1 */
#line 85 /* } */
	return mr_verdict_xdp(pkt, r0_0), LOCK_DONE;             /* 31: exit */
L52:
#line 73 /* bpf_map_update_elem(&sources, &source, &first, BPF_ANY); */
	r0_0 = 3;                                                /* 54: w0 = 3 */
#line 76 /* if (*state != OPEN) { */
	r2_0 = *(const volatile mr_u32 *)p1_0;                   /* 55: r2 = *(u32 *)(r1 +0) */
	if ((u32)r2_0 == 3) return mr_verdict_xdp(pkt, r0_0), LOCK_DONE; /* 56: if w2 == 3 goto 31 */
	r3_0 = r6_0;                                             /* 57: r3 = r6 */
	r3_0 = __builtin_bswap16((u16)r3_0);                     /* 58: r3 = bswap16 r3 */
#line 79 /* if (port == FIRST_PORT + *state) */
	r4_0 = (u32)r2_0;                                        /* 59: w4 = w2 */
	r4_0 = (u32)r4_0 + 100;                                  /* 60: w4 += 100 */
	if ((u32)r4_0 != (u32)r3_0) goto L64;                    /* 61: if w4 != w3 goto 66 */
#line 80
	r2_0 = (u32)r2_0 + 1;                                    /* 62: w2 += 1 */
#line 80 /* *state += 1; */
	if (*(mr_u32 *)p1_0 != (u32)r2_0) return LOCK_RESTART;   /* 63: *(u32 *)(r1 +0) = r2 */
#line 84 /* return *state == OPEN ? XDP_TX : XDP_DROP; */
	if ((u32)r2_0 == 3) return mr_verdict_xdp(pkt, r0_0), LOCK_DONE; /* 64: if w2 == 3 goto 31 */
	goto L30;                                                /* 65: goto 30 */
L64:
	r0_0 = 1;                                                /* 66: w0 = 1 */
	r2_0 = 1;                                                /* 67: w2 = 1 */
#line 82 /* *state = port == FIRST_PORT ? KNOCK_2 : KNOCK_1; */
	if ((u32)r6_0 == 0x6400u) goto L68;                      /* 68: if w6 == 25600 goto 70 */
	r2_0 = 0;                                                /* 69: w2 = 0 */
L68:
	if (*(mr_u32 *)p1_0 != (u32)r2_0) return LOCK_RESTART;   /* 70: *(u32 *)(r1 +0) = r2 */
	return mr_verdict_xdp(pkt, r0_0), LOCK_DONE;             /* 71: goto 31 */
}

static int create_shared(struct mr_shared *self, const struct mr_config *config)
{
	int error;

	error = lock_create(&self->lock, config->workers);
	if (error)
		return error;
	error = hash_create(&self->o0_sources, &shape0_sources, config, config->initial ? config->initial[0] : NULL);
	if (error)
		goto unlock;
	return 0;

unlock:
	lock_destroy(&self->lock);
	return error;
}

static void destroy_shared(struct mr_shared *self)
{
	hash_destroy(&self->o0_sources, &shape0_sources);
	lock_destroy(&self->lock);
}

static int create(struct mr_instance *self, const struct mr_config *config)
{
	if (!config->shared || config->worker >= config->workers)
		return -EINVAL;
	self->shared = config->shared;
	self->core = config->worker;
	return 0;
}

/* static void destroy: as before */

/* The packet as the only one at work, from its beginning. */
static __attribute__((noinline)) void write0(struct mr_instance *self, struct mr_packet *pkt)
{
	lock_read_to_write(&self->shared->lock, self->core);
	pkt->commit = lock_commit_write(&self->shared->lock);
	pkt->time = lock_time_write(&self->shared->lock, pkt->time);
	run0_portknock(self, pkt);
	lock_write_to_read(&self->shared->lock, self->core);
}

MR_INLINE void packet0(struct mr_instance *self, struct mr_packet *pkt)
{
	pkt->undo = NULL;
	if (mr_unlikely(reader0_portknock(self, pkt) == LOCK_RESTART))
		write0(self, pkt);
}

static __attribute__((noinline)) void read0(struct mr_instance *self, struct mr_packet *const *packets, u32 n)
{
	for (u32 i = 0; i < n; i++) {
		fetch_ahead(packets, i, n);
		lock_read_again(&self->shared->lock, self->core);
		packets[i]->core = self->core;
		packets[i]->commit = lock_commit_read(&self->shared->lock);
		packets[i]->time = lock_time_read(&self->shared->lock, self->core, packets[i]->time);
		packet0(self, packets[i]);
	}
}

static __attribute__((noinline)) void burst0_plain(struct mr_instance *self, struct mr_packet *const *packets, u32 n)
{
	if (n == 0)
		return;
	lock_read(&self->shared->lock, self->core);
	read0(self, packets, n);
	lock_read_end(&self->shared->lock, self->core);
}

MR_INLINE void taken_up0(struct mr_instance *self, struct mr_packet *pkt, const struct slot *slot)
{
	pkt->undo = NULL;
	if (mr_unlikely(resume0_portknock(self, pkt, slot) == LOCK_RESTART))
		write0(self, pkt);
}

static inline void prefetch0_portknock_entry(struct mr_instance *self, struct slot *slot)
{
	switch (slot->site) {
	case 1:
		slot->token = hash_prefetch_entry(&self->shared->o0_sources, &shape0_sources, slot->token);
		break;
	default:
		break;
	}
}

/* Three passes, so that the misses of a batch overlap. A token that a writer outdates is made anew. */
static __attribute__((noinline)) void read0_passes(struct mr_instance *self, struct mr_packet *const *packets, u32 n)
{
	struct slot slots[MR_BATCH];

	while (n > 0) {
		const u32 count = n < MR_BATCH ? n : MR_BATCH;

		for (u32 i = 0; i < count; i++) {
			fetch_ahead(packets, i, count);
			slots[i].site = 0;
			prefetch0_portknock(self, packets[i], &slots[i]);
		}
		for (u32 i = 0; i < count; i++)
			prefetch0_portknock_entry(self, &slots[i]);
		for (u32 i = 0; i < count; i++) {
			lock_read_again(&self->shared->lock, self->core);
			packets[i]->core = self->core;
			packets[i]->commit = lock_commit_read(&self->shared->lock);
			packets[i]->time = lock_time_read(&self->shared->lock, self->core, packets[i]->time);
			if (slots[i].site)
				taken_up0(self, packets[i], &slots[i]);
			else
				packet0(self, packets[i]);
		}
		packets += count;
		n -= count;
	}
}

/* A few packets have nothing to overlap; while the state fits the cache the passes would cost more than they save. */
static void burst0(struct mr_instance *self, struct mr_packet *const *packets, u32 n)
{
	if (n == 0)
		return;
	lock_read(&self->shared->lock, self->core);
	if (n >= MR_FEW && (hash_cold(&self->shared->o0_sources, &shape0_sources)))
		read0_passes(self, packets, n);
	else
		read0(self, packets, n);
	lock_read_end(&self->shared->lock, self->core);
}

static u64 o0_sources_count(struct mr_instance *self, u64 now)
{
	u64 result;

	lock_write(&self->shared->lock);
	result = hash_count(&self->shared->o0_sources, &shape0_sources, now);
	lock_write_end(&self->shared->lock);
	return result;
}

static int o0_sources_get(struct mr_instance *self, const u8 *key, u8 *value, u64 now)
{
	int result;

	lock_write(&self->shared->lock);
	result = hash_get(&self->shared->o0_sources, &shape0_sources, key, value, now);
	lock_write_end(&self->shared->lock);
	return result;
}

static int o0_sources_set(struct mr_instance *self, const u8 *key, const u8 *value, u64 now)
{
	int result;

	lock_write(&self->shared->lock);
	result = hash_set(&self->shared->o0_sources, &shape0_sources, key, value, now);
	lock_write_end(&self->shared->lock);
	return result;
}

static int o0_sources_remove(struct mr_instance *self, const u8 *key, u64 now)
{
	int result;

	lock_write(&self->shared->lock);
	result = hash_remove(&self->shared->o0_sources, &shape0_sources, key, now);
	lock_write_end(&self->shared->lock);
	return result;
}

static int o0_sources_next(struct mr_instance *self, u64 *cursor, u8 *key, u8 *value, u64 now)
{
	int result;

	lock_write(&self->shared->lock);
	result = hash_next(&self->shared->o0_sources, &shape0_sources, cursor, key, value, now);
	lock_write_end(&self->shared->lock);
	return result;
}

static u64 o0_sources_full(struct mr_instance *self, u64 now)
{
	u64 result;

	lock_write(&self->shared->lock);
	result = hash_full(&self->shared->o0_sources, &shape0_sources, now);
	lock_write_end(&self->shared->lock);
	return result;
}

static u64 o0_sources_used(struct mr_instance *self, u64 now)
{
	u64 result;

	lock_write(&self->shared->lock);
	result = hash_used(&self->shared->o0_sources, &shape0_sources, now);
	lock_write_end(&self->shared->lock);
	return result;
}

static int o0_sources_save(struct mr_instance *self, mr_saved_fn *fn, void *context)
{
	int result;

	lock_write(&self->shared->lock);
	result = hash_save(&self->shared->o0_sources, &shape0_sources, fn, context);
	lock_write_end(&self->shared->lock);
	return result;
}

static int o0_sources_load(struct mr_instance *self, const struct mr_saved *piece, u64 now)
{
	int result;

	lock_write(&self->shared->lock);
	result = hash_load(&self->shared->o0_sources, &shape0_sources, piece, now);
	lock_write_end(&self->shared->lock);
	return result;
}

static int o0_sources_list(struct mr_instance *self, u64 from, u64 to, mr_saved_fn *fn, void *context)
{
	int result;

	lock_write(&self->shared->lock);
	result = hash_list(&self->shared->o0_sources, &shape0_sources, from, to, fn, context);
	lock_write_end(&self->shared->lock);
	return result;
}

static int o0_sources_put(struct mr_instance *self, const struct mr_saved *piece, u64 now)
{
	int result;

	lock_write(&self->shared->lock);
	result = hash_put(&self->shared->o0_sources, &shape0_sources, piece, now);
	lock_write_end(&self->shared->lock);
	return result;
}

--- static const struct mr_object objects[] = {
+++ static const struct mr_object objects[] = {
@@ -15,2 +15,3 @@
 		.put = o0_sources_put,
+		.shared = 1,
 	},

/* static void (*const bursts[]): as before */

/* static void (*const bursts_plain[]): as before */

--- static const struct mr_module module = {
+++ static const struct mr_module module = {
@@ -15,2 +15,6 @@
 	.burst_plain = bursts_plain,
+	.shared_bytes = sizeof(struct mr_shared),
+	.shared_align = _Alignof(struct mr_shared),
+	.create_shared = create_shared,
+	.destroy_shared = destroy_shared,
 };

__attribute__((visibility("default"))) const struct mr_module *millrace_module(void);

/* const struct mr_module *millrace_module(void): as before */
