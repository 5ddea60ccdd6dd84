/* The handlers of which a function is made, and its parameters. */
#ifndef MILLRACE_HANDLER_H
#define MILLRACE_HANDLER_H

#include <millrace/packet.h>

/* ON_PACKET(p) { … return a verdict; }  every packet, in the order of arrival; exactly one handler
 * ON_START(p)  { … }                    before the first packet
 * ON_STOP(p)   { … }                    after the last
 * EVERY(period, p) { … }                every `period` nanoseconds; any number of them. Where no packet
 *                                       came for several periods it runs once for all of them
 *
 * The last three have a packet of no bytes, for p->time; its name may be left out: ON_START() { … }.
 */
/* With a packet set it is the handler of its live sets (set.h), and has another argument or two. */
#define ON_PACKET(...)                                                                         \
	MILLRACE_THIRD(__VA_ARGS__, MILLRACE_ON_SET, MILLRACE_ON_STATE, MILLRACE_ON_ANY)(      \
		__VA_ARGS__)
#define MILLRACE_THIRD(a, b, c, macro, ...) macro

#define MILLRACE_ON_ANY(p)                                                                     \
	int millrace_on_packet(struct packet *);                                               \
	__attribute__((section("millrace/on_packet"), used)) int millrace_on_packet(           \
		struct packet *p __attribute__((unused)))

#define ON_START(...) MILLRACE_HANDLER("millrace/on_start", millrace_on_start, ##__VA_ARGS__)
#define ON_STOP(...)  MILLRACE_HANDLER("millrace/on_stop", millrace_on_stop, ##__VA_ARGS__)

#define EVERY(period, ...) MILLRACE_EVERY(period, __COUNTER__, ##__VA_ARGS__)

#define MILLRACE_HANDLER(section_name, name, ...)                                              \
	void name(struct packet *);                                                            \
	__attribute__((section(section_name), used)) void name(                                \
		struct packet *MILLRACE_NAMED(__VA_ARGS__) __attribute__((unused)))

/* The packet's name, or one that nobody asks for. */
#define MILLRACE_NAMED(...)              MILLRACE_SECOND(0, ##__VA_ARGS__, millrace_packet, 0)
#define MILLRACE_SECOND(first, name, ...) name

#define MILLRACE_JOIN(a, b)  MILLRACE_JOIN_(a, b)
#define MILLRACE_JOIN_(a, b) a##b
#define MILLRACE_EVERY(period_ns, number, ...)                                                 \
	void MILLRACE_JOIN(millrace_every_, number)(struct packet *);                          \
	static const struct millrace_timer MILLRACE_JOIN(millrace_timer_, number)              \
		__attribute__((section("millrace/timers"), used)) = {                          \
			(period_ns), MILLRACE_JOIN(millrace_every_, number)                    \
	};                                                                                     \
	__attribute__((section("millrace/every"), used)) void                                  \
	MILLRACE_JOIN(millrace_every_, number)(                                                \
		struct packet *MILLRACE_NAMED(__VA_ARGS__) __attribute__((unused)))

struct millrace_timer {
	__u64 period; /* ns */
	void (*function)(struct packet *);
};

/* PARAM(__u64, rate, 1000000): a setting, read like a variable, set with `--set rate=N` before start
 * and constant from then on. */
#define PARAM(T, name, initial) \
	volatile const T name __attribute__((section(".rodata.params"))) = (initial)

#endif
