/* A module written by hand whose state is replicated. A row is the packet's first eight bytes; a packet shorter than that
 * touches no state. State is a number that depends on the order of all rows, and on what happens without one: a timer, and
 * edits. Each firing of the timer, and each packet that begins with 8, leaves a record.
 */
#include <errno.h>
#include <string.h>

#include "abi.h"

#define EVENTS 4096

struct mr_instance {
	u64 state;
	u64 settings; /* what rows are made with */
	u64 events[EVENTS];
	u32 used;
};

static void mix(struct mr_instance *self, u64 value) { self->state = (self->state ^ value) * 0x9e3779b97f4a7c15u + 1; }

static void put(struct mr_instance *self, u64 value)
{
	if (self->used < EVENTS)
		self->events[self->used++] = value;
}

static u32 extract(struct mr_instance *self, u32 program, const struct mr_packet *p, u8 *row)
{
	u64 value;

	if (program || p->end - p->data < 8)
		return 0;
	memcpy(&value, p->data, 8);
	value ^= self->settings;
	memcpy(row, &value, 8);
	return 1;
}

static int replay(struct mr_instance *self, const u8 *rows, u32 n, u64 number, u64 time, u64 ingress)
{
	(void)time;
	(void)ingress;
	for (u32 i = 0; i < n; i++) {
		u64 value;

		memcpy(&value, rows + 8 * i, 8);
		if (value == ~0ull)
			return -EINVAL;
		mix(self, value + number + i);
	}
	return 0;
}

/* What it answers: the state before. */
static void process(struct mr_instance *self, u32 program, struct mr_packet *p, const u8 *row, u64 number)
{
	(void)program;
	p->fate = MR_FORWARD;
	p->out = 0;
	if (p->end - p->data >= 16)
		memcpy(p->data + 8, &self->state, 8);
	if (!row)
		return;
	replay(self, row, 1, number, p->time, p->number);
	if (*p->data == 8)
		put(self, *p->data);
}

static void burst(struct mr_instance *self, struct mr_packet *const *packets, u32 n)
{
	for (u32 i = 0; i < n; i++) {
		u8 row[8];

		process(self, 0, packets[i], extract(self, 0, packets[i], row) ? row : NULL, 0);
	}
}

static int create(struct mr_instance *self, const struct mr_config *config)
{
	memset(self, 0, sizeof(*self));
	self->state = config->time;
	return 0;
}

static void destroy(struct mr_instance *self) { (void)self; }

static void tick(struct mr_instance *self, struct mr_packet *p)
{
	mix(self, p->time);
	put(self, p->time);
}

static int get(struct mr_instance *self, const u8 *key, u8 *value, u64 now)
{
	(void)now;
	if (*key > 1)
		return -ENOENT;
	memcpy(value, *key ? &self->settings : &self->state, 8);
	return 0;
}

static int set(struct mr_instance *self, const u8 *key, const u8 *value, u64 now)
{
	(void)now;
	if (*key > 1)
		return -ENOENT;
	memcpy(*key ? &self->settings : &self->state, value, 8);
	return 0;
}

static void drain(struct mr_instance *self, u32 object, mr_record_fn *fn, void *context)
{
	for (u32 i = 0; i < self->used; i++)
		fn(context, object, (const u8 *)&self->events[i], 8);
	self->used = 0;
}

static const struct mr_object objects[] = {
	{ .name = "state", .kind = "array", .key_bytes = 4, .value_bytes = 8, .capacity = 2, .get = get, .set = set },
	{ .name = "events", .kind = "ringbuf", .capacity = EVENTS, .drain = drain },
};

static const struct mr_timer timers[] = { { .period = 1000, .fire = tick } };

static void (*const bursts[])(struct mr_instance *, struct mr_packet *const *, u32) = { burst };

#ifndef FIXTURE_ROW
#define FIXTURE_ROW 8
#endif

static const struct mr_history history = { .bytes = FIXTURE_ROW, .extract = extract, .process = process, .replay = replay };

static const struct mr_module module = {
	.abi = MR_ABI,
	.objects = 2,
	.timers = 1,
	.programs = 1,
	.instance_bytes = sizeof(struct mr_instance),
	.instance_align = 64,
	.object = objects,
	.timer = timers,
	.create = create,
	.destroy = destroy,
	.burst = bursts,
	.burst_plain = bursts,
	.history = &history,
};

const struct mr_module *millrace_module(void) { return &module; }
