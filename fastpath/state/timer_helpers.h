/* The helpers `timer_*` of a kind whose values may have timers (timers.h). The kinds differ in nothing but how the
 * place of an entry is found: KIND_place, by the address of its timer. To be named once, behind KIND_map_slot.
 */
#ifndef MR_TIMER_HELPERS_H
#define MR_TIMER_HELPERS_H

#include "timers.h"

#define TIMER_HELPERS(kind)                                                                              \
    MR_INLINE u64 kind##_timer_init(struct kind *object, const struct shape *s, u8 *timer, u64 flags,    \
                                    struct mr_packet *pkt)                                               \
    {                                                                                                    \
        (void)pkt;                                                                                       \
        return timers_init(&object->timers, kind##_place(object, s, timer), flags);                      \
    }                                                                                                    \
                                                                                                         \
    MR_INLINE u64 kind##_timer_set_callback(struct kind *object, const struct shape *s, u8 *timer,       \
                                            u64 callback, struct mr_packet *pkt)                         \
    {                                                                                                    \
        (void)pkt;                                                                                       \
        return timers_set_callback(&object->timers, kind##_place(object, s, timer), callback);           \
    }                                                                                                    \
                                                                                                         \
    MR_INLINE u64 kind##_timer_start(struct kind *object, const struct shape *s, u8 *timer, u64 ns,      \
                                     u64 flags, struct mr_packet *pkt)                                   \
    {                                                                                                    \
        u32 place = (u32)kind##_place(object, s, timer);                                                 \
                                                                                                         \
        return timers_start(&object->timers, place, ns, flags, pkt->time);                               \
    }                                                                                                    \
                                                                                                         \
    MR_INLINE u64 kind##_timer_cancel(struct kind *object, const struct shape *s, u8 *timer,             \
                                      struct mr_packet *pkt)                                             \
    {                                                                                                    \
        (void)pkt;                                                                                       \
        return timers_cancel(&object->timers, kind##_place(object, s, timer));                           \
    }                                                                                                    \
                                                                                                         \
    MR_INLINE u8 *kind##_timer_fired(struct kind *object, const struct shape *s, u8 *key,                \
                                     struct mr_packet *pkt)                                              \
    {                                                                                                    \
        return kind##_map_slot(object, s, timers_fired(&object->timers), key, pkt);                      \
    }

#endif
