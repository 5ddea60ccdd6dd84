/* A module written by hand, to test the host without an emitter. A packet says itself what is to
 * become of it: its first byte is the fate, its second byte the argument. Two further fates grow
 * the packet by four bytes at the front (6) and cut it to its first two bytes (7) and forward it, one
 * leaves the packet as a record and consumes it (8), one breaks the bounds (9), one reads the byte
 * behind the packet's last (10): what no emitted module does, and what a sanitizer must catch.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "abi.h"

#ifndef FIXTURE_ABI
#define FIXTURE_ABI MR_ABI
#endif
#ifndef FIXTURE_ALIGN
#define FIXTURE_ALIGN 64
#endif
#ifndef FIXTURE_PERIOD
#define FIXTURE_PERIOD 1000000000
#endif
#ifndef FIXTURE_PROGRAMS
#define FIXTURE_PROGRAMS 1
#endif

#define SLOTS 4
#define EVENTS 4096

struct event {
	u64 length;
	u8 bytes[64];
};

struct mr_instance {
	u64 counts[SLOTS]; /* packets, timers, starts, bursts */
	struct event *events;
	u32 used;
};

static void put(struct mr_instance *self, const void *bytes, u64 length)
{
	if (self->used == EVENTS)
		return;
	struct event *event = &self->events[self->used++];
	event->length = length < sizeof(event->bytes) ? length : sizeof(event->bytes);
	memcpy(event->bytes, bytes, event->length);
}

static void one(struct mr_instance *self, struct mr_packet *p)
{
	self->counts[0]++;
	p->fate = MR_DROP;
	p->out = 0;
	if (p->end - p->data < 2)
		return;
	u8 what = p->data[0];
	u8 argument = p->data[1];
	p->fate = MR_FORWARD;
	p->out = argument;
	switch (what) {
	case 6:
		p->data -= 4;
		p->meta = p->data;
		memset(p->data, 0xee, 4);
		break;
	case 7:
		p->end = p->data + 2;
		break;
	case 8:
		put(self, p->data, (u64)(p->end - p->data));
		p->fate = MR_CONSUME;
		break;
	case 9:
		p->end = p->ceiling + 1;
		break;
	case 10:
		p->out = *(const volatile u8 *)p->end & 0;
		break;
	default:
		p->fate = what;
	}
}

static void burst(struct mr_instance *self, struct mr_packet *const *packets, u32 n)
{
	self->counts[3]++;
	for (u32 i = 0; i < n; i++)
		one(self, packets[i]);
}

/* A timer leaves its moment and the number of packets before it. */
static void every(struct mr_instance *self, struct mr_packet *p)
{
	u64 said[2] = { p->time, self->counts[0] };

	self->counts[1]++;
	put(self, said, sizeof(said));
}

static void start(struct mr_instance *self, struct mr_packet *p)
{
	self->counts[2] += p->data == p->end;
}

static int create(struct mr_instance *self, const struct mr_config *config)
{
	if (config->initial[0])
		memcpy(self->counts, config->initial[0], sizeof(u64));
	self->events = calloc(EVENTS, sizeof(*self->events));
	return self->events ? 0 : -ENOMEM;
}

static void destroy(struct mr_instance *self)
{
	free(self->events);
}

static u64 counts_count(struct mr_instance *self, u64 now)
{
	(void)self;
	(void)now;
	return SLOTS;
}

static int at(const u8 *key, u32 *index)
{
	memcpy(index, key, sizeof(*index));
	return *index < SLOTS ? 0 : -ENOENT;
}

static int counts_get(struct mr_instance *self, const u8 *key, u8 *value, u64 now)
{
	u32 index;

	(void)now;
	if (at(key, &index))
		return -ENOENT;
	memcpy(value, &self->counts[index], sizeof(u64));
	return 0;
}

static int counts_set(struct mr_instance *self, const u8 *key, const u8 *value, u64 now)
{
	u32 index;

	(void)now;
	if (at(key, &index))
		return -E2BIG;
	memcpy(&self->counts[index], value, sizeof(u64));
	return 0;
}

static int counts_next(struct mr_instance *self, u64 *cursor, u8 *key, u8 *value, u64 now)
{
	u32 index = (u32)*cursor;

	(void)now;
	if (index >= SLOTS)
		return -ENOENT;
	memcpy(key, &index, sizeof(index));
	memcpy(value, &self->counts[index], sizeof(u64));
	++*cursor;
	return 0;
}

static void drain(struct mr_instance *self, u32 object, mr_record_fn *fn, void *context)
{
	for (u32 i = 0; i < self->used; i++)
		fn(context, object, self->events[i].bytes, self->events[i].length);
	self->used = 0;
}

static const struct mr_object objects[] = {
	{
		.name = "counts",
		.kind = "array",
		.key_bytes = 4,
		.value_bytes = 8,
		.capacity = SLOTS,
		.bytes = SLOTS * sizeof(u64),
		.count = counts_count,
		.get = counts_get,
		.set = counts_set,
		.next = counts_next,
	},
	{
		.name = "events",
		.kind = "ringbuf",
		.capacity = EVENTS * sizeof(struct event),
		.bytes = EVENTS * sizeof(struct event),
		.drain = drain,
	},
};

static const struct mr_timer timers[] = { { .period = FIXTURE_PERIOD, .fire = every } };

static void (*const bursts[])(struct mr_instance *, struct mr_packet *const *, u32) = { burst };

static const struct mr_module module = {
	.abi = FIXTURE_ABI,
	.objects = 2,
	.timers = 1,
	.programs = FIXTURE_PROGRAMS,
	.instance_bytes = sizeof(struct mr_instance),
	.instance_align = FIXTURE_ALIGN,
	.object = objects,
	.timer = timers,
	.create = create,
	.destroy = destroy,
	.start = start,
	.burst = bursts,
	.burst_plain = bursts,
};

const struct mr_module *millrace_module(void);
const struct mr_module *millrace_module(void)
{
	return &module;
}
