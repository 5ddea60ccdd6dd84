//! TCP options as text: `mss1400;wscale3;sackok;sack1-10;ts1:2;nop`.

/// Options to text; none if they make no sense.
#[must_use]
pub fn show(bytes: &[u8]) -> String {
    let mut all: Vec<String> = Vec::new();
    let mut at = 0;
    while let Some(&kind) = bytes.get(at) {
        match kind {
            0 => break,
            1 => {
                at += 1;
                continue;
            }
            _ => {}
        }
        let length = bytes.get(at + 1).map_or(0, |b| usize::from(*b));
        let Some(body) = bytes.get(at + 2..at + length).filter(|_| length >= 2) else {
            return "?".into();
        };
        let word = |i: usize| {
            let four = body.get(4 * i..4 * i + 4).and_then(|b| b.try_into().ok());
            four.map_or(0, u32::from_be_bytes)
        };
        match (kind, body) {
            (2, [a, b]) => all.push(format!("mss{}", u16::from_be_bytes([*a, *b]))),
            (3, [scale]) => all.push(format!("wscale{scale}")),
            (4, []) => all.push("sackok".into()),
            (5, body) if body.len().is_multiple_of(8) => {
                let blocks = 0..body.len() / 8;
                all.extend(blocks.map(|i| format!("sack{}-{}", word(2 * i), word(2 * i + 1))));
            }
            (8, [_, _, _, _, _, _, _, _]) => all.push(format!("ts{}:{}", word(0), word(1))),
            (kind, body) => {
                let bytes: Vec<_> = body.iter().map(u8::to_string).collect();
                all.push(format!("{kind}={}", bytes.join(":")));
            }
        }
        at += length;
    }
    match all.is_empty() {
        true => ".".into(),
        false => all.join(";"),
    }
}

/// Text to options, padded to four bytes.
#[must_use]
pub fn read(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut blocks: Vec<(u32, u32)> = Vec::new();
    let flush = |blocks: &mut Vec<(u32, u32)>, out: &mut Vec<u8>| {
        if !blocks.is_empty() {
            out.extend([1, 1, 5, 2 + 8 * blocks.len() as u8]);
            for (from, to) in blocks.drain(..) {
                out.extend(from.to_be_bytes());
                out.extend(to.to_be_bytes());
            }
        }
    };
    if matches!(text, "." | "-") {
        return Some(out);
    }
    for option in text.split([';', ',']) {
        if let Some(rest) = option.strip_prefix("sack").filter(|r| *r != "ok") {
            let (from, to) = rest.split_once(['-', ':'])?;
            blocks.push((from.parse().ok()?, to.parse().ok()?));
            if blocks.len() > 4 {
                return None;
            }
            continue;
        }
        flush(&mut blocks, &mut out);
        if option == "sackok" {
            out.extend([4, 2]);
        } else if option == "nop" {
            out.push(1);
        } else if let Some(rest) = option.strip_prefix("mss") {
            out.extend([2, 4]);
            out.extend(rest.parse::<u16>().ok()?.to_be_bytes());
        } else if let Some(rest) = option.strip_prefix("wscale") {
            out.extend([3, 3, rest.parse().ok()?]);
        } else if let Some(rest) = option.strip_prefix("ts") {
            let (value, echo) = rest.split_once(':')?;
            out.extend([1, 1, 8, 10]);
            out.extend(value.parse::<u32>().ok()?.to_be_bytes());
            out.extend(echo.parse::<u32>().ok()?.to_be_bytes());
        } else if !option.is_empty() {
            return None;
        }
    }
    flush(&mut blocks, &mut out);
    while out.len() % 4 != 0 {
        out.push(0);
    }
    (out.len() <= 40).then_some(out)
}
