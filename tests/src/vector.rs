//! Test vectors for instructions: a small assembly text and what `r0` must be at its end.
//!
//! The format is that of the public BPF conformance suite (Alan-Jowett/bpf_conformance), so that its
//! files and our own (tests/conform) are read alike: a line `-- asm`, `-- mem` or `-- result` begins a
//! part, `#` a comment. Instructions are `mnemonic %rN, operand`; a memory operand is `[%rN+offset]`; a
//! name and a colon is a label; the label `exit` is the first `exit` unless it is defined.

use std::collections::HashMap;

/// One file.
#[derive(Clone, Debug, Default)]
pub struct Vector {
    /// the instructions, 8 bytes each
    pub code: Vec<u8>,
    /// what `r1` points to; empty if nothing
    pub memory: Vec<u8>,
    /// what `r0` must be
    pub result: u64,
    /// conformance groups of RFC 9669 section 2.4 that it needs, by name
    pub groups: Vec<&'static str>,
    /// the version of the instruction set that it needs, 1 to 4, as LLVM numbers them
    pub version: u32,
}

impl Vector {
    /// Reads a file's text.
    ///
    /// # Errors
    /// The line that is not understood.
    pub fn read(text: &str) -> Result<Vector, String> {
        let (mut part, mut lines) = ("", Vec::new());
        let (mut memory, mut result) = (String::new(), String::new());
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or("").trim();
            if let Some(name) = line.strip_prefix("--") {
                part = name.trim();
            } else if line.is_empty() {
            } else if part == "asm" {
                lines.push(line);
            } else if part == "mem" {
                memory.extend(line.chars().filter(|c| !c.is_whitespace()));
            } else if part == "result" {
                result = line.to_owned();
            }
        }
        let memory: Option<Vec<u8>> = memory
            .as_bytes()
            .chunks(2)
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
            .collect();
        let mut vector = Vector {
            memory: memory.ok_or("the memory is not hexadecimal")?,
            result: number(&result).ok_or_else(|| format!("the result `{result}`"))? as u64,
            version: 1,
            ..Vector::default()
        };
        vector.assemble(&lines)?;
        Ok(vector)
    }

    fn assemble(&mut self, lines: &[&str]) -> Result<(), String> {
        let (mut labels, mut body, mut slot) = (HashMap::new(), Vec::new(), 0);
        let mut exit = None;
        for line in lines {
            if let Some(label) = line.strip_suffix(':') {
                labels.insert(label.trim(), slot);
                continue;
            }
            if *line == "exit" && exit.is_none() {
                exit = Some(slot);
            }
            body.push((slot, *line));
            slot += if line.starts_with("lddw") { 2 } else { 1 };
        }
        if let Some(exit) = exit {
            labels.entry("exit").or_insert(exit);
        }
        for (slot, line) in body {
            let wrong = || format!("`{line}` is not understood");
            for word in one(line, slot, &labels).ok_or_else(wrong)? {
                self.code.extend(word.to_le_bytes());
            }
            let Some(first) = self.code.get(8 * slot as usize..8 * slot as usize + 8) else {
                return Err(wrong());
            };
            let (group, version) = class(first);
            self.version = self.version.max(version);
            if !self.groups.contains(&group) {
                self.groups.push(group);
            }
        }
        Ok(())
    }
}

/// The group of an instruction, and the version that brought it.
fn class(slot: &[u8]) -> (&'static str, u32) {
    let &[opcode, _, offset, _, imm, ..] = slot else {
        return ("base64", 1);
    };
    let wide = matches!(opcode & 7, 5 | 7);
    let newest = |groups: [&'static str; 2], version| (groups[usize::from(wide)], version);
    match (opcode & 7, opcode & 0xf0) {
        (1, _) if opcode & 0xe0 == 0x80 && opcode & 0x18 == 0 => ("base64", 4),
        (1, _) if opcode & 0xe0 == 0x80 => ("base32", 4),
        (3, _) if opcode == 0xc3 => ("atomic32", 3),
        (3, _) if opcode == 0xdb => ("atomic64", 3),
        (0, _) => ("base64", 1),
        (1..=3, _) if opcode & 0x18 == 0x18 => ("base64", 1),
        (1..=3, _) => ("base32", 1),
        (4 | 7, 0x30 | 0x90) => newest(["divmul32", "divmul64"], if offset == 1 { 4 } else { 1 }),
        (4 | 7, 0x20) => newest(["divmul32", "divmul64"], 1),
        (7, 0xd0) => (if imm == 64 { "base64" } else { "base32" }, 4),
        (4, 0xd0) => (if imm == 64 { "base64" } else { "base32" }, 1),
        (4 | 7, 0xb0) => newest(["base32", "base64"], if offset > 0 { 4 } else { 1 }),
        (6, 0) => ("base32", 4),
        (6, _) => ("base32", 3),
        (5, 0x00 | 0x80 | 0x90) => ("base32", 1),
        (5, 0xa0..=0xd0) => ("base64", 2),
        _ => newest(["base32", "base64"], 1),
    }
}

fn number(text: &str) -> Option<i64> {
    let (minus, digits) = text
        .strip_prefix('-')
        .map_or((false, text), |rest| (true, rest));
    let lower = digits.to_ascii_lowercase();
    let value = match lower.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok()?,
        None => lower.parse().ok()?,
    };
    let value = value as i64;
    Some(if minus { value.wrapping_neg() } else { value })
}

fn register(text: &str) -> Option<u64> {
    text.strip_prefix("%r")?.parse().ok().filter(|r| *r <= 10)
}

/// `[%r1+8]`: register and offset.
fn place(text: &str) -> Option<(u64, i64)> {
    let inside = text.strip_prefix('[')?.strip_suffix(']')?;
    let end = inside.find(['+', '-']).unwrap_or(inside.len());
    let (base, offset) = inside.split_at(end);
    let offset = offset.strip_prefix('+').unwrap_or(offset);
    let offset = if offset.is_empty() {
        0
    } else {
        number(offset)?
    };
    Some((register(base)?, offset))
}

fn slot(opcode: u64, dst: u64, src: u64, offset: i64, imm: i64) -> u64 {
    opcode | dst << 8 | src << 12 | (offset as u64 & 0xffff) << 16 | (imm as u64) << 32
}

/// The slots of one instruction.
fn one(line: &str, at: i64, labels: &HashMap<&str, i64>) -> Option<Vec<u64>> {
    let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
    if name == "lock" {
        return atomic(rest.trim()).map(|s| vec![s]);
    }
    let operands: Vec<&str> = rest.split(',').map(str::trim).collect();
    let (a, b, c) = (
        operands.first().copied().unwrap_or(""),
        operands.get(1).copied().unwrap_or(""),
        operands.get(2).copied().unwrap_or(""),
    );
    let target = |label: &str| match labels.get(label) {
        Some(to) => Some(to - at - 1),
        None => number(label.strip_prefix('+').unwrap_or(label)),
    };
    let word = match name {
        "exit" => slot(0x95, 0, 0, 0, 0),
        "ja" => slot(0x05, 0, 0, target(a)?, 0),
        "ja32" => slot(0x06, 0, 0, 0, target(a)?),
        "call" => match (a.strip_prefix("local "), register(a)) {
            (Some(label), _) => slot(0x85, 0, 1, 0, target(label.trim())?),
            (_, Some(r)) => slot(0x8d, r, 0, 0, 0),
            _ => slot(0x85, 0, 0, 0, number(a)?),
        },
        "lddw" => {
            let value = number(b)?;
            let high = slot(0, 0, 0, 0, value >> 32);
            return Some(vec![slot(0x18, register(a)?, 0, 0, value), high]);
        }
        _ if name.starts_with("ldx") => {
            let (base, offset) = place(b)?;
            let (mode, size) = match name.get(3..)?.strip_prefix('s') {
                Some(size) => (0x80, size),
                None => (0x60, name.get(3..)?),
            };
            slot(1 | mode | bytes(size)?, register(a)?, base, offset, 0)
        }
        _ if name.starts_with("stx") => {
            let (base, offset) = place(a)?;
            slot(3 | 0x60 | bytes(&name[3..])?, base, register(b)?, offset, 0)
        }
        "stb" | "sth" | "stw" | "stdw" => {
            let (base, offset) = place(a)?;
            slot(2 | 0x60 | bytes(&name[2..])?, base, 0, offset, number(b)?)
        }
        _ => arithmetic(name, a, b).or_else(|| branch(name, a, b, target(c)?))?,
    };
    Some(vec![word])
}

fn bytes(size: &str) -> Option<u64> {
    Some(match size {
        "w" => 0x00,
        "h" => 0x08,
        "b" => 0x10,
        "dw" => 0x18,
        _ => return None,
    })
}

fn atomic(text: &str) -> Option<u64> {
    let (text, fetch) = match text.strip_prefix("fetch ") {
        Some(rest) => (rest, 1),
        None => (text, 0),
    };
    let (name, rest) = text.trim().split_once(' ')?;
    let (memory, src) = rest.split_once(',')?;
    let (base, offset) = place(memory.trim())?;
    let (op, size) = match name.strip_suffix("32") {
        Some(op) => (op, 0xc3),
        None => (name, 0xdb),
    };
    let imm = match op {
        "add" => fetch,
        "or" => 0x40 | fetch,
        "and" => 0x50 | fetch,
        "xor" => 0xa0 | fetch,
        "xchg" => 0xe1,
        "cmpxchg" => 0xf1,
        _ => return None,
    };
    Some(slot(size, base, register(src.trim())?, offset, imm))
}

fn arithmetic(name: &str, a: &str, b: &str) -> Option<u64> {
    let dst = register(a)?;
    for (prefix, opcode) in [("le", 0xd4), ("be", 0xdc), ("bswap", 0xd7), ("swap", 0xd7)] {
        if let Some(bits @ ("16" | "32" | "64")) = name.strip_prefix(prefix) {
            return Some(slot(opcode, dst, 0, 0, number(bits)?));
        }
    }
    if let Some(kind) = name.strip_prefix("movsx") {
        let (from, class) = match kind {
            "832" => (8, 4),
            "1632" => (16, 4),
            "864" => (8, 7),
            "1664" => (16, 7),
            "3264" => (32, 7),
            _ => return None,
        };
        return Some(slot(0xb8 | class, dst, register(b)?, from, 0));
    }
    let (op, class) = match name.strip_suffix("32") {
        Some(op) => (op, 4),
        None => (name, 7),
    };
    let (code, offset) = match op {
        "add" => (0x00, 0),
        "sub" => (0x10, 0),
        "mul" => (0x20, 0),
        "div" => (0x30, 0),
        "sdiv" => (0x30, 1),
        "or" => (0x40, 0),
        "and" => (0x50, 0),
        "lsh" => (0x60, 0),
        "rsh" => (0x70, 0),
        "neg" => return Some(slot(0x80 | class, dst, 0, 0, 0)),
        "mod" => (0x90, 0),
        "smod" => (0x90, 1),
        "xor" => (0xa0, 0),
        "mov" => (0xb0, 0),
        "arsh" => (0xc0, 0),
        _ => return None,
    };
    Some(match register(b) {
        Some(src) => slot(code | 8 | class, dst, src, offset, 0),
        None => slot(code | class, dst, 0, offset, number(b)?),
    })
}

fn branch(name: &str, a: &str, b: &str, delta: i64) -> Option<u64> {
    let (op, class) = match name.strip_suffix("32") {
        Some(op) => (op, 6),
        None => (name, 5),
    };
    let code = match op {
        "jeq" => 0x10,
        "jgt" => 0x20,
        "jge" => 0x30,
        "jset" => 0x40,
        "jne" => 0x50,
        "jsgt" => 0x60,
        "jsge" => 0x70,
        "jlt" => 0xa0,
        "jle" => 0xb0,
        "jslt" => 0xc0,
        "jsle" => 0xd0,
        _ => return None,
    };
    let left = register(a)?;
    Some(match register(b) {
        Some(right) => slot(code | 8 | class, left, right, delta, 0),
        None => slot(code | class, left, 0, delta, number(b)?),
    })
}
