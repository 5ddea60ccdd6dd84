//! Programs that update checksums over and over, in the ways in which compilers and people write that, and in ways that only look so.

use millrace_object::insn::{AluOp, Condition, Insn, Size, Width};

use super::generate::{callee, whole};
use crate::support::asm::*;
use crate::support::random::Random;

/// Where sums are in the packet.
const PLACES: &[i16] = &[16, 16, 16, 16, 16, 16, 24, 17];
/// Where what is added is read.
const WORDS: &[i16] = &[16, 24, 32, 40, 42, 64];
/// Widths: 64 bits, where a sum rarely wraps, most of the time.
const WIDTHS: &[Width] = &[Width::W64, Width::W64, Width::W32];

/// An entry and the function it may call (number 1).
pub fn program(random: &mut Random) -> (Vec<Insn>, Vec<Insn>) {
    let mut body = Vec::new();
    for _ in 0..2 + random.below(6) {
        let update = update(random);
        // On one of two paths now and then.
        if random.below(5) == 0 {
            let beyond = body.len() + 1 + update.len();
            body.push(branchi(Condition::Test, Width::W64, R1, 4, beyond));
        }
        let at = body.len();
        body.extend(shifted(&update, at));
    }
    (whole(&body), callee(random))
}

/// An update of one sum.
fn update(random: &mut Random) -> Vec<Insn> {
    let mut insns = Vec::new();
    let at = random.of(PLACES);
    insns.push(match random.below(16) {
        // What an earlier update left, whole or half.
        0 => mov(R3, R8),
        1 => load(Size::B4, R3, R6, at),
        _ => load(Size::B2, R3, R6, at),
    });
    complement(random, &mut insns);
    for _ in 0..1 + random.below(4) {
        let size = match random.below(16) {
            0 => Size::B8,
            1..4 => Size::B4,
            4..6 => Size::B1,
            _ => Size::B2,
        };
        insns.push(load(size, R4, R6, random.of(WORDS)));
        if random.below(2) == 0 {
            insns.push(alui(AluOp::Xor, Width::W64, R4, 0xffff));
        }
        insns.push(alu(AluOp::Add, random.of(WIDTHS), R3, R4));
    }
    match random.below(10) {
        0 => {}
        1 => round(random, &mut insns),
        _ => {
            if random.below(2) == 0 {
                half(&mut insns, 32, true, Width::W64);
                half(&mut insns, 16, true, Width::W64);
            }
            half(&mut insns, 16, true, random.of(WIDTHS));
            half(&mut insns, 16, random.below(2) == 0, random.of(WIDTHS));
        }
    }
    complement(random, &mut insns);
    if random.below(3) == 0 {
        insns.push(mov(R8, R3));
    }
    let size = match random.below(16) {
        0 => Size::B4,
        1 => Size::B1,
        _ => Size::B2,
    };
    insns.push(store(size, R6, at, R3));
    insns
}

/// `r3` with 16 bits the other way round; or as it is.
fn complement(random: &mut Random, insns: &mut Vec<Insn>) {
    let width = random.of(WIDTHS);
    match random.below(8) {
        0 => {}
        1..=3 => insns.push(alui(AluOp::Xor, width, R3, 0xffff)),
        _ => insns.extend([
            alui(AluOp::Xor, width, R3, -1),
            alui(AluOp::And, width, R3, 0xffff),
        ]),
    }
}

/// A step of a fold, or what looks so.
fn round(random: &mut Random, insns: &mut Vec<Insn>) {
    let bits = random.of(&[16, 16, 32, 15]);
    half(insns, bits, random.below(2) == 0, random.of(WIDTHS));
}

/// `r3 = (r3 & mask) + (r3 >> bits)`, or without the mask.
fn half(insns: &mut Vec<Insn>, bits: i64, masked: bool, width: Width) {
    insns.push(mov(R4, R3));
    insns.push(alui(
        AluOp::Rsh,
        width,
        R4,
        bits.min(31 + (width == Width::W64) as i64),
    ));
    match (masked, bits) {
        (false, _) => {}
        // As clang cuts what it cannot take into an immediate.
        (true, 32) if width == Width::W64 && insns.len().is_multiple_of(2) => insns.extend([
            alui(AluOp::Lsh, width, R3, 32),
            alui(AluOp::Rsh, width, R3, 32),
        ]),
        (true, 32) => insns.push(alu(AluOp::Mov, Width::W32, R3, R3)),
        (true, _) => insns.push(alui(AluOp::And, width, R3, (1 << bits) - 1)),
    }
    insns.push(alu(AluOp::Add, width, R3, R4));
}
