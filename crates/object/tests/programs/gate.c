/* A handler program, spelled without nf.h: state, ports, reasons, parameters, a timer. */
#include <linux/types.h>
#include <millrace/object.h>

#define SEC(name) __attribute__((section(name), used))

struct packet {
	__u32 data, data_end, data_meta, port, queue, reserved;
	__u64 time;
	__u32 ports;
};

struct flow {
	__u32 from, to;
};

struct session {
	__u64 packets;
};

static struct {
	struct flow *key;
	struct session *value;
	struct millrace_object object;
} flows SEC("millrace/state") = {
	.object = {
		.kind = MILLRACE_MAP,
		.key_bytes = sizeof(struct flow),
		.value_bytes = sizeof(struct session),
		.options = { .capacity = 1024, .expire_after = 60000000000 },
	},
};

static struct {
	__u32 *key;
	struct session *value;
	struct millrace_object object;
} per_port SEC("millrace/state") = {
	.object = {
		.kind = MILLRACE_VECTOR,
		.value_bytes = sizeof(struct session),
		.options = { .capacity = 16 },
	},
};

static const char ports[] SEC("millrace/ports") = "LAN\0WAN";

volatile const __u32 limit SEC(".rodata.params") = 7;
volatile const _Bool strict SEC(".rodata.params") = 1;
volatile const __s64 offset SEC(".rodata.params") = -1;

static void *(*map_get)(void *, const void *) = (void *)0x10000;
static void *(*vector_at)(void *, __u64) = (void *)0x10010;

#define DROP_BECAUSE(name) ({                                                  \
	static const char _name[] SEC("millrace/reasons") = #name;             \
	(int)(unsigned long)_name;                                             \
})

static __attribute__((noinline)) int next_port(struct packet *p, int by)
{
	return p->port + by;
}

SEC("millrace/on_packet") int millrace_on_packet(struct packet *p)
{
	struct flow key = { p->port, 2 };
	struct session *session = map_get(&flows, &key);
	struct session *port;

	if (!session)
		return DROP_BECAUSE(no_flow);
	port = vector_at(&per_port, session->packets);
	if (!port)
		return DROP_BECAUSE(bad_header);
	if (port->packets > limit)
		return DROP_BECAUSE(no_flow);
	port->packets += 1;
	return 1 << 24 | (next_port(p, strict) & 1);
}

SEC("millrace/on_start") void millrace_on_start(struct packet *p)
{
	struct session *first = vector_at(&per_port, 0);

	if (first)
		first->packets = offset;
}

SEC("millrace/every") static void reset(struct packet *p)
{
	struct session *third = vector_at(&per_port, 3);

	if (third)
		third->packets = p->time;
}

struct timer {
	__u64 period;
	void (*function)(struct packet *);
};

static const struct timer timer_reset SEC("millrace/timers") = { 1000000000, reset };
