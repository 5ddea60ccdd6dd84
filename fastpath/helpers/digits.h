/* What strtol and strtoul have in common: a sign and digits, as Linux 6.18 reads them
 * (kernel/bpf/helpers.c, lib/kstrtox.c). White space is that of ASCII, and 0xa0.
 */
#ifndef MR_HELPER_DIGITS_H
#define MR_HELPER_DIGITS_H

#include "../base.h"

/* The most bytes after the sign that are looked at. */
#define DIGITS_MAX 63u

struct digits {
    u64 value;
    u64 taken; /* bytes, or a negative errno */
    int negative;
};

/* The byte at `i`, 0 beyond the end. */
MR_INLINE u8 digits_at(const u8 *p, u64 length, u64 i) { return i < length ? p[i] : 0; }

/* Of a digit in any base up to 16; 16 for other bytes. */
MR_INLINE u32 digits_value(u8 c)
{
    u8 lower = c | 0x20;

    if (c >= '0' && c <= '9')
        return c - '0';
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10u : 16;
}

MR_OUTLINE struct digits digits_read(const u8 *p, u64 length, u64 flags)
{
    struct digits d = { .taken = mr_errno(EINVAL) };
    u64 base = flags, from = 0, i = 0;
    int overflow = 0;

    if (flags != 0 && flags != 8 && flags != 10 && flags != 16)
        return d;
    while (from < length && (p[from] == ' ' || (p[from] >= 9 && p[from] <= 13) || p[from] == 0xa0))
        from++;
    d.negative = from < length && p[from] == '-';
    from += (u64)d.negative;
    p += from;
    length -= from;
    if (length > DIGITS_MAX)
        length = DIGITS_MAX;
    if (base == 0) {
        base = 10;
        if (digits_at(p, length, 0) == '0')
            base = (digits_at(p, length, 1) | 0x20) == 'x' && digits_value(digits_at(p, length, 2)) < 16 ? 16 : 8;
    }
    if (base == 16 && digits_at(p, length, 0) == '0' && (digits_at(p, length, 1) | 0x20) == 'x')
        i = 2;
    for (; i < length; i++) {
        u64 value = digits_value(p[i]);

        if (value >= base)
            break;
        overflow |= d.value > (~0ull - value) / base;
        d.value = d.value * base + value;
        d.taken = from + i + 1;
    }
    if (overflow)
        d.taken = mr_errno(ERANGE);
    return d;
}

#endif
