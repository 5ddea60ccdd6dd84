/* Loads a module and feeds it events on several threads, one instance each; by pipes, as driver.c.
 *
 * In: u32 workers, u32 plain, u32 burst size, u32 events, u32 rounds (how often each worker goes through its own); per object u32 length of
 * its initial value, bytes; per event u32 worker, u32 program (TIMER + index: a timer; PHASE: all workers
 * wait for each other here), u32 port, u32 length, u64 time, u64 number, bytes. Out: per event u64 commit, u64 time,
 * u32 fate, u32 out, u32 length, bytes; then per object u32 entries, and each one's key and value: of a
 * shared object once, of others every worker's. Last u64 hundredths of a
 * time stamp tick a packet, of all workers together.
 */
#include <pthread.h>
#include <sched.h>

#include "host.h"

#define TIMER 0x80000000u
#define PHASE 0xffffffffu

struct event {
	u32 worker, program, port, length;
	u64 time, number;
};

static u32 head[5];
static struct event *events;
static struct mr_packet *packets;
static pthread_barrier_t barrier;
static struct mr_instance **instances;

static void round(u32 worker)
{
	struct mr_packet *burst[256];
	u32 program = 0, n = 0;

	for (u32 i = 0; i <= head[3]; i++) {
		int last = i == head[3];

		if (!last && events[i].program != PHASE && events[i].worker != worker)
			continue;
		if (n > 0 && (last || n == head[2] || events[i].program != program)) {
			(head[1] ? module->burst_plain : module->burst)[program](instances[worker], burst, n);
			n = 0;
		}
		if (last)
			break;
		program = events[i].program;
		if (program == PHASE)
			pthread_barrier_wait(&barrier);
		else if (program & TIMER)
			module->timer[program & ~TIMER].fire(instances[worker], &packets[i]);
		else
			burst[n++] = &packets[i];
	}
}

static void *work(void *argument)
{
	pthread_barrier_wait(&barrier);
	for (u32 i = 0; i < head[4]; i++)
		round((u32)(uintptr_t)argument);
	return NULL;
}

static void show(u32 object, u64 now)
{
	const struct mr_object *o = &module->object[object];
	/* The length of a handler's prefix stands before it. */
	u32 bytes = o->key_bytes + (strcmp(o->kind, "lpm") ? 0 : 4);
	u8 *key = must(calloc(1, bytes + 1)), *value = must(calloc(1, o->value_bytes + 1));
	u32 count = 0;

	for (int pass = 0; pass < 2; pass++) {
		if (pass)
			give(&count, 4);
		for (u32 w = 0; w < (o->shared ? 1 : head[0]); w++) {
			u64 cursor = 0;

			while (o->next && o->next(instances[w], &cursor, key, value, now) == 0) {
				count += !pass;
				if (pass) {
					give(key, bytes);
					give(value, o->value_bytes);
				}
			}
		}
	}
	free(key);
	free(value);
}

int main(int argc, char **argv)
{
	struct mr_packet none = { .ports = 2 };
	pthread_t thread[64];
	u8 **memory;
	u64 now = 0, ticks;

	load(argc, argv);
	take(head, sizeof(head));
	take_objects(0);
	events = must(calloc(head[3] + 1, sizeof(*events)));
	packets = must(calloc(head[3] + 1, sizeof(*packets)));
	memory = must(calloc(head[3] + 1, sizeof(*memory)));
	for (u32 i = 0; i < head[3]; i++) {
		struct mr_packet *p = &packets[i];

		take(&events[i], sizeof(events[i]));
		memory[i] = must(malloc(events[i].length + 1));
		take(memory[i], events[i].length);
		p->data = p->meta = p->floor = p->bared = memory[i];
		p->end = p->ceiling = p->data + events[i].length;
		p->port = events[i].port;
		p->time = now = events[i].time;
		p->number = events[i].number;
		p->cpu = events[i].worker;
		p->ports = 2;
		p->fate = 77;
	}
	if (head[0] < 1 || head[0] > 64 || head[2] < 1 || head[2] > 256)
		exit(6);
	config.workers = head[0];
	config.time = head[3] ? events[0].time : 0;
	if (module->shared_bytes) {
		config.shared = must(aligned_alloc(64, (module->shared_bytes + 63) / 64 * 64));
		memset(config.shared, 0, module->shared_bytes);
		if (module->create_shared(config.shared, &config))
			exit(7);
	} else if (head[0] > 1) {
		exit(8);
	}
	instances = must(calloc(head[0], sizeof(*instances)));
	none.time = config.time;
	for (u32 w = 0; w < head[0]; w++) {
		config.worker = w;
		instances[w] = created();
	}
	for (u32 w = 0; module->start && w < (module->start_once ? 1 : head[0]); w++)
		module->start(instances[w], &none);
	pthread_barrier_init(&barrier, NULL, head[0]);
	ticks = __builtin_ia32_rdtsc();
	for (u32 w = 0; w < head[0]; w++)
		if (pthread_create(&thread[w], NULL, work, (void *)(uintptr_t)w))
			exit(10);
	for (u32 w = 0; w < head[0]; w++)
		pthread_join(thread[w], NULL);
	ticks = (__builtin_ia32_rdtsc() - ticks) * 100 / ((u64)head[3] * head[4] + 1);
	for (u32 i = 0; i < head[3]; i++) {
		give(&packets[i].commit, 8);
		give(&packets[i].time, 8);
		give_packet(&packets[i]);
		free(memory[i]);
	}
	for (u32 i = 0; i < module->objects; i++)
		show(i, now);
	give(&ticks, 8);
	for (u32 w = 0; w < head[0]; w++)
		end(instances[w]);
	if (module->shared_bytes) {
		module->destroy_shared(config.shared);
		free(config.shared);
	}
	free_objects();
	free(instances);
	free(events);
	free(packets);
	free(memory);
	return 0;
}
