/* A module written by hand whose instances share a counter under the lock, to test the host without an
 * emitter: every packet adds one to it and forwards to port 0; one of a single byte only reads it. */
#include "abi.h"
#include "sync/lock.h"

struct mr_shared {
	struct lock lock;
	u64 total;
	u64 started;
	u64 packets; /* of all workers */
	u64 seen;    /* of these when it stopped */
};

struct mr_instance {
	struct mr_shared *shared;
	u32 core;
	u64 own;
};

static void burst(struct mr_instance *self, struct mr_packet *const *packets, u32 n)
{
	struct lock *k = &self->shared->lock;

	lock_read(k, self->core);
	for (u32 i = 0; i < n; i++) {
		struct mr_packet *p = packets[i];

		p->fate = MR_FORWARD;
		p->out = 0;
		p->commit = lock_commit_read(k);
		self->own++;
		__atomic_fetch_add(&self->shared->packets, 1, __ATOMIC_RELAXED);
		if (p->end - p->data == 1)
			continue;
		lock_read_to_write(k, self->core);
		p->commit = lock_commit_write(k);
		self->shared->total++;
		lock_write_to_read(k, self->core);
	}
	lock_read_end(k, self->core);
}

static void start(struct mr_instance *self, struct mr_packet *p)
{
	(void)p;
	lock_write(&self->shared->lock);
	self->shared->started++;
	lock_write_end(&self->shared->lock);
}

static __attribute__((unused)) int create_shared(struct mr_shared *self, const struct mr_config *config)
{
	return lock_create(&self->lock, config->workers);
}

static void destroy_shared(struct mr_shared *self)
{
	lock_destroy(&self->lock);
}

static void stop(struct mr_instance *self, struct mr_packet *p)
{
	(void)p;
	lock_write(&self->shared->lock);
	self->shared->seen += self->shared->packets;
	lock_write_end(&self->shared->lock);
}

static int create(struct mr_instance *self, const struct mr_config *config)
{
	if (!config->shared || config->worker >= config->workers)
		return -EINVAL;
	self->shared = config->shared;
	self->core = config->worker;
	return 0;
}

static void destroy(struct mr_instance *self)
{
	(void)self;
}

static int total_get(struct mr_instance *self, const u8 *key, u8 *value, u64 now)
{
	(void)now;
	lock_write(&self->shared->lock);
	memcpy(value, *key == 0 ? &self->shared->total : *key == 1 ? &self->shared->started : &self->shared->seen,
	       sizeof(u64));
	lock_write_end(&self->shared->lock);
	return 0;
}

static int total_set(struct mr_instance *self, const u8 *key, const u8 *value, u64 now)
{
	u64 more;

	(void)key;
	(void)now;
	memcpy(&more, value, sizeof(more));
	lock_write(&self->shared->lock);
	self->shared->total += more;
	lock_write_end(&self->shared->lock);
	return 0;
}

static int own_get(struct mr_instance *self, const u8 *key, u8 *value, u64 now)
{
	(void)key;
	(void)now;
	memcpy(value, &self->own, sizeof(u64));
	return 0;
}

static const struct mr_object objects[] = {
	{ .name = "total", .kind = "array", .key_bytes = 1, .value_bytes = 8, .capacity = 3, .get = total_get, .set = total_set, .shared = 1 },
	{ .name = "own", .kind = "array", .key_bytes = 1, .value_bytes = 8, .capacity = 1, .get = own_get },
};

static void (*const bursts[])(struct mr_instance *, struct mr_packet *const *, u32) = { burst };

static const struct mr_module module = {
	.abi = MR_ABI,
	.objects = 2,
	.programs = 1,
	.instance_bytes = sizeof(struct mr_instance),
	.instance_align = _Alignof(struct mr_instance),
	.object = objects,
	.create = create,
	.destroy = destroy,
	.start = start,
	.stop = stop,
	.burst = bursts,
	.burst_plain = bursts,
	.shared_bytes = sizeof(struct mr_shared),
	.shared_align = _Alignof(struct mr_shared),
#ifndef SHARED_CANNOT_BE_MADE
	.create_shared = create_shared,
#endif
	.destroy_shared = destroy_shared,
	.start_once = 1,
	.stop_once = 1,
};

const struct mr_module *millrace_module(void);
const struct mr_module *millrace_module(void)
{
	return &module;
}
