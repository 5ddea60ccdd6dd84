//! Arguments of a configuration string: split at commas, comments removed, quotes resolved.
//!
//! The rules are those of Click's manual page click(5): single quotes are literal, double quotes know backslash
//! escapes, `\<48 45>` is bytes in hexadecimal inside and outside of double quotes, and an empty last argument is none.

/// Splits a configuration string at its top-level commas; blanks around arguments and comments go.
#[must_use]
pub fn split(config: &str) -> Vec<String> {
    let mut args = pieces(config, b',');
    if args.last().is_some_and(String::is_empty) {
        args.pop();
    }
    args
}

/// Splits an argument at its blanks, outside of quotes.
#[must_use]
pub fn words(arg: &str) -> Vec<String> {
    let mut words = pieces(arg, b' ');
    words.retain(|w| !w.is_empty());
    words
}

/// The first word, and what follows it.
#[must_use]
pub fn first_word(arg: &str) -> (&str, &str) {
    let arg = arg.trim_start();
    let end = scan(arg, |b, depth| b.is_ascii_whitespace() && depth == 0);
    (&arg[..end], arg[end..].trim())
}

/// How far the text goes before a byte outside of quotes that ends it.
fn scan(text: &str, mut ends: impl FnMut(u8, usize) -> bool) -> usize {
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(&b) = bytes.get(at) {
        if ends(b, depth) {
            return at;
        }
        match b {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at = (at + quoted(bytes, at)).min(bytes.len());
    }
    bytes.len()
}

/// Bytes of the quoted piece at a place; 1 if none begins there.
fn quoted(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or(&[]);
    match (rest.first(), rest.get(1)) {
        (Some(b'\''), _) => match rest.iter().skip(1).position(|b| *b == b'\'') {
            Some(end) => end + 2,
            None => rest.len(),
        },
        (Some(b'"'), _) => {
            let mut end = 1;
            while let Some(&b) = rest.get(end) {
                match b {
                    b'"' => return end + 1,
                    b'\\' => end += 2,
                    _ => end += 1,
                }
            }
            rest.len()
        }
        (Some(b'\\'), Some(b'<')) => match rest.iter().position(|b| *b == b'>') {
            Some(end) => end + 1,
            None => rest.len(),
        },
        (Some(b'\\'), Some(_)) => 2,
        _ => 1,
    }
}

fn pieces(text: &str, separator: u8) -> Vec<String> {
    let bytes = text.as_bytes();
    let mut args = Vec::new();
    let mut arg: Vec<u8> = Vec::new();
    let (mut at, mut depth) = (0, 0_usize);
    let mut flush = |arg: &mut Vec<u8>| {
        args.push(String::from_utf8_lossy(arg).trim().to_owned());
        arg.clear();
    };
    while let Some(&b) = bytes.get(at) {
        let blank = b.is_ascii_whitespace();
        match (b, bytes.get(at + 1)) {
            (b'/', Some(b'/')) => {
                let rest = bytes.iter().skip(at).position(|b| *b == b'\n');
                at += rest.unwrap_or(bytes.len() - at);
                continue;
            }
            (b'/', Some(b'*')) => {
                let rest = bytes.get(at + 2..).unwrap_or(&[]);
                let end = rest.windows(2).position(|w| w == b"*/");
                at += end.map_or(bytes.len() - at, |e| e + 4);
                arg.push(b' ');
                continue;
            }
            _ => {}
        }
        if depth == 0 && (b == separator || (separator == b' ' && blank)) {
            flush(&mut arg);
            at += 1;
            continue;
        }
        match b {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        let length = quoted(bytes, at).min(bytes.len() - at);
        arg.extend_from_slice(&bytes[at..at + length]);
        at += length;
    }
    flush(&mut arg);
    args
}

/// The bytes that an argument stands for: quotes and escapes resolved.
#[must_use]
pub fn unquote(arg: &str) -> Vec<u8> {
    let bytes = arg.as_bytes();
    let mut out = Vec::new();
    let mut quote = 0_u8;
    let mut at = 0;
    while let Some(&b) = bytes.get(at) {
        match b {
            b'\'' | b'"' if quote == 0 => quote = b,
            b'\'' | b'"' if quote == b => quote = 0,
            b'\\' if quote != b'\'' && bytes.get(at + 1) == Some(&b'<') => {
                let rest = bytes.get(at + 2..).unwrap_or(&[]);
                let end = rest.iter().position(|b| *b == b'>').unwrap_or(rest.len());
                hexadecimal(rest.get(..end).unwrap_or(&[]), &mut out);
                at += end + 2;
            }
            b'\\' if quote == b'"' => at += escape(bytes.get(at + 1..).unwrap_or(&[]), &mut out),
            _ => out.push(b),
        }
        at += 1;
    }
    out
}

/// The same as text; what is no UTF-8 becomes U+FFFD.
#[must_use]
pub fn text(arg: &str) -> String {
    String::from_utf8(unquote(arg))
        .unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
}

fn hexadecimal(digits: &[u8], out: &mut Vec<u8>) {
    let mut half = None;
    let (mut at, digits) = (0, digits);
    while let Some(&b) = digits.get(at) {
        // Comments may stand between the digits.
        if b == b'/' && digits.get(at + 1) == Some(&b'/') {
            at += digits
                .iter()
                .skip(at)
                .position(|b| *b == b'\n')
                .unwrap_or(digits.len());
            continue;
        }
        at += 1;
        let Some(digit) = (b as char).to_digit(16) else {
            continue;
        };
        match half.take() {
            None => half = Some(digit as u8),
            Some(high) => out.push(high << 4 | digit as u8),
        }
    }
    if let Some(high) = half {
        out.push(high);
    }
}

/// Resolves what stands behind a backslash; how many bytes that was.
fn escape(rest: &[u8], out: &mut Vec<u8>) -> usize {
    let Some(&b) = rest.first() else {
        out.push(b'\\');
        return 0;
    };
    let simple = match b {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'a' => 7,
        b'b' => 8,
        b'f' => 12,
        b'v' => 11,
        // A line's end is continued.
        b'\n' => return 1,
        b'0'..=b'7' => {
            let digits = rest
                .iter()
                .take(3)
                .take_while(|b| (b'0'..=b'7').contains(*b));
            let (mut number, mut length) = (0_u32, 0);
            for digit in digits {
                number = number * 8 + u32::from(digit - b'0');
                length += 1;
            }
            out.push(number as u8);
            return length;
        }
        b'x' => {
            let digits = rest.iter().skip(1).take_while(|b| b.is_ascii_hexdigit());
            let (mut number, mut length) = (0_u32, 1);
            for digit in digits {
                let digit = (*digit as char).to_digit(16).unwrap_or(0);
                number = (number << 4 | digit) & 0xff;
                length += 1;
            }
            out.push(number as u8);
            return length;
        }
        other => other,
    };
    out.push(simple);
    1
}

/// Text as one argument: in double quotes if it needs them.
#[must_use]
pub fn quote(text: &str) -> String {
    let plain = |b: u8| b.is_ascii_graphic() && !b"\"'\\,()$#".contains(&b) || b >= 0x80;
    if !text.is_empty() && text.bytes().all(plain) && !text.contains("//") && !text.contains("/*") {
        return text.to_owned();
    }
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' | '$' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if (c as u32) < 32 => out.push_str(&format!("\\{:03o}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
