/* Loads a module and feeds it packets, all by pipes, so that tests can run it under sanitizers.
 *
 * In: u32 plain, u32 burst size, u32 packets; per object u32 length of its initial value, bytes (none:
 * zeros); per packet u32 program, u32 port, u64 time, u32 length,
 * bytes. Out: per packet u32 fate, u32 out, u32 length, bytes; then per object u64 count.
 * Each packet has a memory of exactly its length, so that a sanitizer sees the first byte too far.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi.h"

static void take(void *to, size_t bytes)
{
	if (bytes && fread(to, bytes, 1, stdin) != 1) {
		fprintf(stderr, "driver: the input ends early\n");
		exit(3);
	}
}

static void give(const void *from, size_t bytes)
{
	if (bytes && fwrite(from, bytes, 1, stdout) != 1)
		exit(4);
}

static void *must(void *p, const char *what)
{
	if (!p) {
		fprintf(stderr, "driver: %s: %s\n", what, dlerror());
		exit(5);
	}
	return p;
}

int main(int argc, char **argv)
{
	void *library = must(argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL, "dlopen");
	const struct mr_module *(*entry)(void);
	const struct mr_module *module;
	struct mr_config config = { .hash_seed = 11, .sketch_seed = 22 };
	struct mr_packet *packet, **pointers;
	struct mr_instance *self;
	u32 head[3], *program;
	u8 **initial;
	u64 now = 0;
	int error;

	*(void **)&entry = must(dlsym(library, "millrace_module"), "dlsym");
	module = entry();
	self = must(aligned_alloc(64, (module->instance_bytes + 63) / 64 * 64), "memory");
	take(head, sizeof(head));
	initial = calloc(module->objects + 1, sizeof(*initial));
	for (u32 i = 0; i < module->objects; i++) {
		u32 length;

		take(&length, 4);
		if (length)
			initial[i] = must(malloc(length), "memory");
		take(initial[i], length);
	}
	config.initial = (const u8 *const *)initial;
	error = module->create(self, &config);
	if (error) {
		fprintf(stderr, "driver: create: %d\n", error);
		return 6;
	}
	packet = calloc(head[2] + 1, sizeof(*packet));
	pointers = calloc(head[2] + 1, sizeof(*pointers));
	program = calloc(head[2] + 1, sizeof(*program));
	for (u32 i = 0; i < head[2]; i++) {
		struct mr_packet *p = pointers[i] = &packet[i];
		u32 length;

		take(&program[i], 4);
		take(&p->port, 4);
		take(&p->time, 8);
		take(&length, 4);
		p->data = p->meta = p->floor = must(malloc(length), "memory");
		p->end = p->ceiling = p->data + length;
		p->ports = 2;
		p->number = i;
		p->fate = 77;
		take(p->data, length);
		now = p->time;
	}
	if (module->start) {
		struct mr_packet none = { .time = head[2] ? packet[0].time : 0, .ports = 2 };

		module->start(self, &none);
	}
	for (u32 i = 0; i < head[2];) {
		u32 n = 1;

		while (n < head[1] && i + n < head[2] && program[i + n] == program[i])
			n++;
		(head[0] ? module->burst_plain : module->burst)[program[i]](self, pointers + i, n);
		i += n;
	}
	for (u32 i = 0; i < head[2]; i++) {
		u32 length = (u32)(packet[i].end - packet[i].data);

		give(&packet[i].fate, 4);
		give(&packet[i].out, 4);
		give(&length, 4);
		give(packet[i].data, length);
		free(packet[i].data);
	}
	for (u32 i = 0; i < module->objects; i++) {
		u64 count = module->object[i].count ? module->object[i].count(self, now) : 0;

		give(&count, 8);
	}
	module->destroy(self);
	for (u32 i = 0; i < module->objects; i++)
		free(initial[i]);
	free(initial);
	free(self);
	free(packet);
	free(pointers);
	free(program);
	return 0;
}
