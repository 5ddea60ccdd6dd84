/* The parts that drivers of tests share: pipes, a module and its instances, packets, the content of objects. Where
 * something is wrong the process ends, each reason with a status of its own. */
#ifndef TEST_HOST_H
#define TEST_HOST_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi.h"

static const struct mr_module *module;
static struct mr_config config = { .hash_seed = 11, .sketch_seed = 22 };
static u8 **initial;
static u32 *compared; /* per object, whether it is compared */

static inline void take(void *to, size_t bytes)
{
	if (bytes && fread(to, bytes, 1, stdin) != 1) {
		fprintf(stderr, "driver: the input ends early\n");
		exit(3);
	}
}

static inline void give(const void *from, size_t bytes)
{
	if (bytes && fwrite(from, bytes, 1, stdout) != 1)
		exit(4);
}

static inline void *must(void *p)
{
	if (!p) {
		const char *why = dlerror();

		fprintf(stderr, "driver: %s\n", why ? why : "no memory");
		exit(5);
	}
	return p;
}

/* The module that the command line names. */
static inline void load(int argc, char **argv)
{
	const struct mr_module *(*entry)(void);

	*(void **)&entry = must(dlsym(must(argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL), "millrace_module"));
	module = entry();
}

/* Per object: where it is `marked`, u32 whether it is compared; u32 length of its initial value, bytes (none: zeros). */
static inline void take_objects(int marked)
{
	initial = must(calloc(module->objects + 1, sizeof(*initial)));
	compared = must(calloc(module->objects + 1, sizeof(*compared)));
	for (u32 i = 0; i < module->objects; i++) {
		u32 length;

		if (marked)
			take(&compared[i], 4);
		take(&length, 4);
		if (length)
			initial[i] = must(malloc(length));
		take(initial[i], length);
	}
	config.initial = (const u8 *const *)initial;
}

static inline void free_objects(void)
{
	for (u32 i = 0; i < module->objects; i++)
		free(initial[i]);
	free(initial);
	free(compared);
}

/* An instance that has not started. */
static inline struct mr_instance *created(void)
{
	struct mr_instance *self = must(aligned_alloc(64, (module->instance_bytes + 63) / 64 * 64));
	int error;

	memset(self, 0, module->instance_bytes);
	error = module->create(self, &config);
	if (error) {
		fprintf(stderr, "driver: create: %d\n", error);
		exit(6);
	}
	return self;
}

static inline struct mr_instance *started(u64 time)
{
	struct mr_instance *self = created();
	struct mr_packet none = { .time = time, .ports = 2 };

	if (module->start)
		module->start(self, &none);
	return self;
}

static inline void end(struct mr_instance *self)
{
	if (!self)
		return;
	module->destroy(self);
	free(self);
}

/* u32 port, u64 time, u32 length, and where there is `more`, a u32 for it; bytes, in a memory of exactly their length, so that
 * a sanitizer sees the first byte too far. */
static inline void take_packet(struct mr_packet *p, u64 number, u32 *more)
{
	u32 length;

	memset(p, 0, sizeof(*p));
	take(&p->port, 4);
	take(&p->time, 8);
	take(&length, 4);
	if (more)
		take(more, 4);
	p->data = p->meta = p->floor = must(malloc(length));
	p->end = p->ceiling = p->data + length;
	p->ports = 2;
	p->number = number;
	p->fate = 77;
	take(p->data, length);
}

/* u32 fate, u32 out, u32 length, bytes. */
static inline void give_packet(const struct mr_packet *p)
{
	u32 length = (u32)(p->end - p->data);

	give(&p->fate, 4);
	give(&p->out, 4);
	give(&length, 4);
	give(p->data, length);
}

/* The content of an object, byte for byte. */
struct saved {
	const struct mr_object *object;
	u8 *bytes;
	size_t length, room;
};

static inline void add(struct saved *s, const void *from, size_t n)
{
	while (s->length + n > s->room) {
		s->room = s->room ? 2 * s->room : 4096;
		s->bytes = must(realloc(s->bytes, s->room));
	}
	if (n)
		memcpy(s->bytes + s->length, from, n);
	s->length += n;
}

static inline int keep(void *context, const struct mr_saved *piece)
{
	struct saved *s = context;
	struct mr_saved plain = *piece;

	plain.key = NULL;
	plain.value = NULL;
	add(s, &plain, sizeof(plain));
	if (piece->key)
		add(s, piece->key, s->object->key_bytes);
	if (piece->value)
		add(s, piece->value, piece->what == MR_SAVED_BYTES ? piece->length : s->object->value_bytes);
	return 0;
}

/* The first compared object that differs between two instances, from 1; 0: none. */
static inline u32 apart(struct mr_instance *one, struct mr_instance *other)
{
	u32 differs = 0;

	for (u32 o = 0; o < module->objects; o++) {
		struct saved a = { .object = &module->object[o] }, b = a;

		if (!compared[o] || !module->object[o].save)
			continue;
		if (module->object[o].save(one, keep, &a) || module->object[o].save(other, keep, &b))
			exit(8);
		if (!differs && (a.length != b.length || (a.length && memcmp(a.bytes, b.bytes, a.length))))
			differs = o + 1;
		free(a.bytes);
		free(b.bytes);
	}
	return differs;
}

#endif
