/* Durations, in nanoseconds: the unit of packet times, expiry and timers. */
#ifndef MILLRACE_TIME_H
#define MILLRACE_TIME_H

#define NANOSECONDS(n)  ((__u64)(n))
#define MICROSECONDS(n) ((__u64)(n) * 1000)
#define MILLISECONDS(n) ((__u64)(n) * 1000000)
#define SECONDS(n)      ((__u64)(n) * 1000000000)
#define MINUTES(n)      (SECONDS(n) * 60)

#endif
