/* Formats of the kernel's printing helpers (kernel/bpf/helpers.c `bpf_bprintf_prepare`, lib/vsprintf.c): %d %i %u
 * %x %X with l or ll, %c, %%, with the flags 0 + - and blank and a width. Conversions that read memory at an
 * address (%s, %p…) are refused before a program runs, and are errors here.
 */
#ifndef MR_HELPER_FORMAT_H
#define MR_HELPER_FORMAT_H

#include "../base.h"

#define FORMAT_VALUES 12u       /* most values */
#define FORMAT_WIDTH 0x7fffffull /* the widest field */

struct format_out {
    u8 *to;
    u64 room;    /* bytes that may be written, the closing zero included */
    u64 length;  /* of the whole text */
};

MR_INLINE void format_put(struct format_out *out, u8 c, u64 times)
{
    for (u64 i = 0; i < times && out->length + i + 1 < out->room; i++)
        out->to[out->length + i] = c;
    out->length += times;
}

struct format_field {
    int zero, plus, left, blank;
    u64 width;
    u8 conversion; /* 0: none that there is */
    int wide;      /* 64 bits */
};

/* Reads what follows a percent sign; gives its length. */
MR_INLINE u64 format_read(const u8 *f, struct format_field *field)
{
    u64 i = 0;

    *field = (struct format_field){0};
    for (;; i++) {
        if (f[i] == '0')
            field->zero = 1;
        else if (f[i] == '+')
            field->plus = 1;
        else if (f[i] == '-')
            field->left = 1;
        else if (f[i] == ' ')
            field->blank = 1;
        else
            break;
    }
    for (; f[i] >= '0' && f[i] <= '9'; i++)
        if (field->width < FORMAT_WIDTH)
            field->width = field->width * 10 + (u64)(f[i] - '0');
    if (field->width > FORMAT_WIDTH)
        field->width = FORMAT_WIDTH;
    if (f[i] == 'c') {
        field->conversion = 'c';
        return i + 1;
    }
    for (u32 l = 0; l < 2 && f[i] == 'l'; l++, i++)
        field->wide = 1;
    switch (f[i]) {
    case 'd':
    case 'i':
    case 'u':
    case 'x':
    case 'X':
        field->conversion = f[i];
        return i + 1;
    default:
        return i;
    }
}

MR_INLINE void format_number(struct format_out *out, const struct format_field *field, u64 value)
{
    const char *digit = field->conversion == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
    int is_signed = field->conversion == 'd' || field->conversion == 'i';
    u64 base = field->conversion == 'x' || field->conversion == 'X' ? 16 : 10;
    u64 used = 0, pad;
    u8 digits[20], sign = 0;
    u32 n = 0;

    if (!field->wide)
        value = is_signed ? (u64)(s64)(s32)value : (u32)value;
    if (is_signed) {
        sign = (s64)value < 0 ? '-' : field->plus ? '+' : field->blank ? ' ' : 0;
        if ((s64)value < 0)
            value = -value;
    }
    do {
        digits[n++] = (u8)digit[value % base];
        value /= base;
    } while (value);
    used = n + (sign != 0);
    pad = field->width > used ? field->width - used : 0;
    if (!field->left && !field->zero)
        format_put(out, ' ', pad);
    if (sign)
        format_put(out, sign, 1);
    if (!field->left && field->zero)
        format_put(out, '0', pad);
    while (n > 0)
        format_put(out, digits[--n], 1);
    if (field->left)
        format_put(out, ' ', pad);
}

/* Finds the next conversion from `*at` on, which moves behind it; 0 if there is none. */
MR_INLINE int format_next(const u8 *f, u64 *at, struct format_field *field)
{
    for (u64 i = *at; f[i]; i++) {
        if (f[i] != '%')
            continue;
        if (f[i + 1] != '%') {
            *at = i + 1 + format_read(f + i + 1, field);
            return 1;
        }
        i++;
    }
    return 0;
}

/* Whether the kernel takes a format with this many values. */
MR_INLINE int format_fits(const u8 *f, u64 values)
{
    struct format_field field;

    for (u64 i = 0; f[i]; i++)
        if (f[i] > 0x7e || (f[i] < 0x20 && !(f[i] >= 9 && f[i] <= 13)))
            return 0;
    for (u64 at = 0; format_next(f, &at, &field);)
        if (values-- == 0 || !field.conversion)
            return 0;
    return 1;
}

/* The length of the text, of which as much is written as there is room for, and a zero byte. */
MR_OUTLINE u64 format_write(u8 *to, u64 room, const u8 *f, const u8 *values)
{
    struct format_out out = {.to = to, .room = room};
    struct format_field field;

    for (u64 i = 0; f[i]; i++) {
        if (f[i] != '%') {
            format_put(&out, f[i], 1);
            continue;
        }
        if (f[i + 1] == '%') {
            i++;
            format_put(&out, '%', 1);
            continue;
        }
        i += format_read(f + i + 1, &field);
        if (field.conversion == 'c') {
            u64 pad = field.width > 1 ? field.width - 1 : 0;

            format_put(&out, ' ', field.left ? 0 : pad);
            format_put(&out, *values, 1);
            format_put(&out, ' ', field.left ? pad : 0);
        } else {
            format_number(&out, &field, mr_load64(values));
        }
        values += 8;
    }
    if (room > 0)
        to[out.length < room ? out.length : room - 1] = 0;
    return out.length;
}

/* Whether a format has conversions that read memory at an address, and how many it has of any kind. */
MR_INLINE int format_reads(const u8 *f, u32 *count)
{
    struct format_field field;
    int reads = 0;

    *count = 0;
    for (u64 at = 0; format_next(f, &at, &field); ++*count)
        reads |= !field.conversion && !field.wide && (f[at] == 's' || f[at] == 'p');
    return reads;
}

/* What a helper returns that would write a line of this format: its length, or -EINVAL. Where that depends on
 * values that are not at hand, or on memory at an address, it is the format's length. */
MR_OUTLINE u64 format_line(const u8 *f, u64 bytes, const u8 *values, u64 most)
{
    u32 count;

    if (!bytes || !memchr(f, 0, bytes))
        return mr_errno(EINVAL);
    if (format_reads(f, &count))
        return strlen((const char *)f);
    if (!format_fits(f, most))
        return mr_errno(EINVAL);
    return count && !values ? strlen((const char *)f) : format_write(NULL, 0, f, values);
}

#endif
