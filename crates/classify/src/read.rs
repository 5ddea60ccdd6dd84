//! Files of rules.
//!
//! Two forms, which may be mixed, a rule a line, the first of highest priority; `#` begins a comment. `class N` at the end of
//! a line gives the rule's class, 1 where it is missing.
//!
//! ```text
//! src 10.0.0.0/8 dport 80-443 protocol 6 class 2
//! * class 3
//! @10.0.0.0/8  0.0.0.0/0  0 : 65535  80 : 443  0x06/0xFF  0x0000/0x0000  class 2
//! ```
//!
//! The first names fields of the key; those that it does not name may have any value. The second is ClassBench's (Taylor and
//! Turner, "ClassBench: a packet classification benchmark", Transactions on Networking 15(3), 2007): source and destination
//! prefix, source and destination ports, protocol and mask, and flags and mask where the file has them.

use std::io::BufRead;

use crate::key::{Field, Key};
use crate::rules::{Interval, RuleError, Rules};
use crate::value;

/// Most bytes of a file of rules.
pub const MOST_BYTES: u64 = 1 << 28;
/// Most bytes of a line.
const MOST_LINE: u64 = 4096;
/// Most intervals that a value and mask may stand for.
const MOST_MASKED: u32 = 256;

/// The columns of ClassBench's form, and names of fields that they are.
const COLUMNS: [(&str, &[&str]); 6] = [
    (
        "source address",
        &["src", "saddr", "source", "src_ip", "sip"],
    ),
    (
        "destination address",
        &["dst", "daddr", "destination", "dst_ip", "dip"],
    ),
    ("source port", &["sport", "src_port", "source_port", "sp"]),
    (
        "destination port",
        &["dport", "dst_port", "destination_port", "dp"],
    ),
    ("protocol", &["protocol", "proto", "nexthdr"]),
    ("flags", &["flags", "tcp_flags"]),
];
const FLAGS: usize = 5;

/// Why a file of rules cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}: {what}; {fix}")]
pub struct FileError {
    /// the line, from 1
    pub line: usize,
    /// what is wrong
    pub what: String,
    /// what to do
    pub fix: String,
}

/// What was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Read {
    /// the rules
    pub rules: Rules,
    /// rules whose TCP flags were not compared, because the key has no field `flags`
    pub flags_ignored: usize,
}

type Wrong = (String, String);

impl Rules {
    /// Reads rules over `key`, with classes below `classes`; at most `most` boxes.
    ///
    /// # Errors
    /// [`FileError`]: the first line that is no rule, with what to do.
    pub fn read(
        mut from: impl BufRead,
        key: &Key,
        classes: u32,
        most: usize,
    ) -> Result<Read, FileError> {
        let mut read = Read {
            rules: Self::new(key.clone(), classes, most),
            flags_ignored: 0,
        };
        let columns = columns(key);
        let mut line = Vec::new();
        let mut bytes = 0;
        for number in 1.. {
            let wrong = |(what, fix): Wrong| FileError {
                line: number,
                what,
                fix,
            };
            line.clear();
            let mut limited = std::io::Read::take(&mut from, MOST_LINE + 1);
            let got = limited.read_until(b'\n', &mut line);
            let got =
                got.map_err(|e| wrong((format!("cannot be read: {e}"), "check the file".into())))?;
            if got == 0 {
                return Ok(read);
            }
            bytes += got as u64;
            if got as u64 > MOST_LINE {
                return Err(wrong((
                    format!("longer than {MOST_LINE} bytes"),
                    "write one rule a line".into(),
                )));
            }
            if bytes > MOST_BYTES {
                return Err(wrong((
                    format!("the file is larger than {} MiB", MOST_BYTES >> 20),
                    "give fewer rules".into(),
                )));
            }
            let Ok(text) = std::str::from_utf8(&line) else {
                return Err(wrong((
                    "no text (not UTF-8)".into(),
                    "give a file of rules, one a line".into(),
                )));
            };
            let text = text.split('#').next().unwrap_or("").trim();
            if text.is_empty() {
                continue;
            }
            rule(&mut read, text, number as u32, &columns).map_err(wrong)?;
        }
        Ok(read)
    }
}

fn columns(key: &Key) -> [Option<usize>; 6] {
    COLUMNS.map(|(_, names)| {
        let mut fields = key.fields().iter();
        fields.position(|f| names.contains(&f.name.as_str()))
    })
}

fn rule(read: &mut Read, text: &str, line: u32, columns: &[Option<usize>; 6]) -> Result<(), Wrong> {
    let mut words: Vec<&str> = text.split_whitespace().collect();
    let mut class = 1;
    if let [.., "class", number] = words.as_slice() {
        let classes = read.rules.classes();
        class = number
            .parse::<u32>()
            .ok()
            .filter(|c| *c < classes)
            .ok_or_else(|| {
                (
                    format!("class `{number}`"),
                    format!(
                        "classes are 0 to {}; raise .classes of the CLASSIFIER for more",
                        classes - 1
                    ),
                )
            })?;
        words.truncate(words.len() - 2);
    } else if read.rules.classes() < 2 {
        class = 0;
    }
    if let Some(first) = words.first().and_then(|w| w.strip_prefix('@')) {
        words[0] = first;
        return classbench(read, &words, class, line, columns);
    }
    let fields = read.rules.key().fields();
    let mut box_: Vec<Interval> = fields.iter().map(any).collect();
    let mut named = vec![false; fields.len()];
    // A line needs something besides its class.
    if words == ["*"] {
        words.clear();
    }
    for pair in words.chunks(2) {
        let &[name, text] = pair else {
            return Err((
                format!("`{}` without a value", pair.first().unwrap_or(&"")),
                "write pairs of a field and its value, and `class N` at the end".into(),
            ));
        };
        let Some(at) = fields.iter().position(|f| f.name == name) else {
            return Err((
                format!("the key has no field `{name}`"),
                format!("its fields are {}", names(fields)),
            ));
        };
        if std::mem::replace(&mut named[at], true) {
            return Err((format!("`{name}` twice"), "name each field once".into()));
        }
        box_[at] = value::interval(text, &fields[at])?;
    }
    push(&mut read.rules, &box_, class, line)
}

fn names(fields: &[Field]) -> String {
    let names: Vec<&str> = fields.iter().map(|f| f.name.as_str()).collect();
    names.join(", ")
}

fn any(field: &Field) -> Interval {
    Interval {
        first: 0,
        last: field.max(),
    }
}

fn push(rules: &mut Rules, fields: &[Interval], class: u32, line: u32) -> Result<(), Wrong> {
    rules.push(fields, class, line).map_err(|e| {
        let fix = match e {
            RuleError::Many(_) => "raise .capacity of the CLASSIFIER, or give fewer rules",
            _ => "correct it",
        };
        (e.to_string(), fix.into())
    })
}

/// Prefix, prefix, `lo : hi`, `lo : hi`, `value/mask`, and `value/mask` of flags.
fn classbench(
    read: &mut Read,
    words: &[&str],
    class: u32,
    line: u32,
    columns: &[Option<usize>; 6],
) -> Result<(), Wrong> {
    let (src, dst, sport, dport, protocol, flags) = match *words {
        [src, dst, a, ":", b, c, ":", d, protocol] => (src, dst, (a, b), (c, d), protocol, None),
        [src, dst, a, ":", b, c, ":", d, protocol, flags] => {
            (src, dst, (a, b), (c, d), protocol, Some(flags))
        }
        _ => {
            return Err((
                "no rule of ClassBench's form".into(),
                "write @SRC/LEN DST/LEN LO : HI LO : HI PROTOCOL/MASK".into(),
            ));
        }
    };
    let mut boxes = vec![
        read.rules
            .key()
            .fields()
            .iter()
            .map(any)
            .collect::<Vec<Interval>>(),
    ];
    let mut limit = |column: usize, found: &dyn Fn(&Field) -> Result<Vec<Interval>, Wrong>| {
        let fields = read.rules.key().fields();
        let Some(at) = columns[column] else {
            // As wide as the column is in the format.
            let bytes = [4, 4, 2, 2, 1, 2][column];
            let field = Field {
                name: COLUMNS[column].1[0].into(),
                offset: 0,
                bytes,
                order: crate::key::Order::Network,
            };
            let all = any(&field);
            if found(&field)?.contains(&all) {
                return Ok(());
            }
            if column == FLAGS {
                read.flags_ignored += 1;
                return Ok(());
            }
            return Err((
                format!("it limits the {}, which the key lacks", COLUMNS[column].0),
                format!(
                    "give the key a field `{}`; it has {}",
                    COLUMNS[column].1[0],
                    names(fields)
                ),
            ));
        };
        let intervals = found(&fields[at])?;
        let with = |b: &Vec<Interval>| {
            let b = b.clone();
            let of = move |i: &Interval| {
                let mut b = b.clone();
                b[at] = *i;
                b
            };
            intervals.iter().map(of).collect::<Vec<_>>()
        };
        boxes = boxes.iter().flat_map(with).collect();
        Ok(())
    };
    let ports = |(low, high): (&str, &str), field: &Field| {
        let interval = Interval {
            first: value::number(low, field)?,
            last: value::number(high, field)?,
        };
        Ok(vec![value::bounded(interval, field)?])
    };
    limit(0, &|f| Ok(vec![value::interval(src, f)?]))?;
    limit(1, &|f| Ok(vec![value::interval(dst, f)?]))?;
    limit(2, &|f| ports(sport, f))?;
    limit(3, &|f| ports(dport, f))?;
    limit(4, &|f| masked(protocol, f))?;
    if let Some(flags) = flags {
        limit(FLAGS, &|f| masked(flags, f))?;
    }
    for fields in boxes {
        push(&mut read.rules, &fields, class, line)?;
    }
    Ok(())
}

/// The intervals of `value/mask`: one if the mask is a prefix.
fn masked(text: &str, field: &Field) -> Result<Vec<Interval>, Wrong> {
    let (value, mask) = match text.split_once('/') {
        Some((value, mask)) => (value::number(value, field)?, value::number(mask, field)?),
        None => (value::number(text, field)?, field.max()),
    };
    if value > field.max() || mask > field.max() {
        return Err((
            format!("`{text}` is more than `{}` holds", field.name),
            format!("it is a field of {} bits", 8 * field.bytes),
        ));
    }
    let free = !mask & field.max();
    let below = free.trailing_ones();
    let run = if below >= 128 {
        u128::MAX
    } else {
        (1 << below) - 1
    };
    let spread = free & !run;
    if spread.count_ones() > MOST_MASKED.ilog2() {
        return Err((
            format!("the mask of `{text}` stands for more than {MOST_MASKED} intervals"),
            "write several rules with masks that are prefixes".into(),
        ));
    }
    let mut intervals = Vec::new();
    let mut bits = 0;
    loop {
        let first = value & mask | bits;
        intervals.push(Interval {
            first,
            last: first | run,
        });
        // The next subset of the free bits above the run.
        bits = bits.wrapping_sub(spread) & spread;
        if bits == 0 {
            return Ok(intervals);
        }
    }
}
