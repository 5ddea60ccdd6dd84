/* Loads a module and feeds it packets one by one, all by pipes, so that it can run under sanitizers.
 *
 * In: u32 object whose value is told after each packet, u32 packets, u64 time of the first and u64 time from
 * one to the next; per object u32 length of its
 * initial value, bytes; per packet u32 program, u32 port, u32 headroom, u32 length, bytes.
 * Out: per packet u32 fate, u32 out, u32 length, bytes, that object's value (8 bytes), u32 records, and
 * per record u32 object, u32 length, bytes; then per object u32 entries, each its key and value.
 * Each packet has memory of exactly its headroom and length, so that a sanitizer sees the first byte
 * too far; what was told before it speaks says which packet it was.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi.h"

static FILE *records;

static void take(void *to, size_t bytes)
{
	if (bytes && fread(to, bytes, 1, stdin) != 1) {
		fprintf(stderr, "driver: the input ends early\n");
		exit(3);
	}
}

static void give(FILE *file, const void *from, size_t bytes)
{
	if (bytes && fwrite(from, bytes, 1, file) != 1)
		exit(4);
}

static void give32(FILE *file, u32 n)
{
	give(file, &n, 4);
}

static void *must(void *p, const char *what)
{
	if (!p) {
		fprintf(stderr, "driver: %s\n", what);
		exit(5);
	}
	return p;
}

static void record(void *context, u32 object, const u8 *bytes, u64 length)
{
	++*(u32 *)context;
	give32(records, object);
	give32(records, (u32)length);
	give(records, bytes, length);
}

static void one(const struct mr_module *module, struct mr_instance *self, u32 number, u32 trace, u64 time)
{
	struct mr_packet packet = { .ports = 2, .number = number, .time = time, .fate = 77 };
	struct mr_packet *pointer = &packet;
	u32 program, headroom, length, count = 0;
	u64 value = 0;
	char *text = NULL;
	size_t bytes = 0;

	take(&program, 4);
	take(&packet.port, 4);
	take(&headroom, 4);
	take(&length, 4);
	packet.floor = must(calloc(1, headroom + length), "memory");
	packet.data = packet.meta = packet.bared = packet.floor + headroom;
	packet.end = packet.ceiling = packet.data + length;
	take(packet.data, length);
	alarm(20);
	module->burst[program](self, &pointer, 1);
	alarm(0);
	length = (u32)(packet.end - packet.data);
	give32(stdout, packet.fate);
	give32(stdout, packet.out);
	give32(stdout, length);
	give(stdout, packet.data, length);
	module->object[trace].get(self, NULL, (u8 *)&value, packet.time);
	give(stdout, &value, 8);
	records = must(open_memstream(&text, &bytes), "memory");
	for (u32 i = 0; i < module->objects; i++)
		if (module->object[i].drain)
			module->object[i].drain(self, i, record, &count);
	fclose(records);
	give32(stdout, count);
	give(stdout, text, bytes);
	fflush(stdout);
	free(text);
	free(packet.floor);
}

/* Bytes of a listed key: the length of a handler's prefix stands before it. */
static u32 listed_bytes(const struct mr_object *object)
{
	return object->key_bytes + (strcmp(object->kind, "lpm") ? 0 : 4);
}

static void entries(const struct mr_object *object, struct mr_instance *self, u64 now)
{
	u32 key = listed_bytes(object);
	u8 *pair = must(calloc(1, key + object->value_bytes + 1), "memory");
	u64 cursor = 0;
	u32 count = 0;

	if (object->next) {
		while (!object->next(self, &cursor, pair, pair + key, now))
			count++;
		cursor = 0;
	}
	give32(stdout, count);
	while (count--) {
		object->next(self, &cursor, pair, pair + key, now);
		give(stdout, pair, key + object->value_bytes);
	}
	free(pair);
}

int main(int argc, char **argv)
{
	void *library = must(argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL, "dlopen");
	const struct mr_module *(*entry)(void);
	struct mr_config config = { .hash_seed = 11, .sketch_seed = 0 };
	const struct mr_module *module;
	struct mr_instance *self;
	u32 head[2];
	u64 time[2];
	u8 **initial;

	*(void **)&entry = must(dlsym(library, "millrace_module"), "dlsym");
	module = entry();
	self = must(aligned_alloc(64, (module->instance_bytes + 63) / 64 * 64), "memory");
	memset(self, 0, module->instance_bytes);
	take(head, sizeof(head));
	take(time, sizeof(time));
	initial = must(calloc(module->objects + 1, sizeof(*initial)), "memory");
	for (u32 i = 0; i < module->objects; i++) {
		u32 length;

		take(&length, 4);
		if (length)
			initial[i] = must(malloc(length), "memory");
		take(initial[i], length);
	}
	config.initial = (const u8 *const *)initial;
	if (module->create(self, &config)) {
		fprintf(stderr, "driver: create\n");
		return 6;
	}
	for (u32 i = 0; i < head[1]; i++)
		one(module, self, i, head[0], time[0] + time[1] * i);
	for (u32 i = 0; i < module->objects; i++)
		entries(&module->object[i], self, time[0] + time[1] * (head[1] - 1));
	module->destroy(self);
	for (u32 i = 0; i < module->objects; i++)
		free(initial[i]);
	free(initial);
	free(self);
	return 0;
}
