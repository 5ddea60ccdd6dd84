//! The features of a processor: a guest's libraries choose their functions once, by what they find at their start.

use std::arch::x86_64::{__cpuid, __cpuid_count, _xgetbv};

/// The leaves whose bits name abilities: leaf, subleaf, and which of eax, ebx, ecx and edx (Intel SDM volume 2, CPUID;
/// AMD APM volume 3, appendix E).
const LEAVES: [(u32, u32, [bool; 4]); 5] = [
    (1, 0, [false, false, true, true]),
    (7, 0, [false, true, true, true]),
    (7, 1, [true, false, false, true]),
    (0xd, 1, [true, false, false, false]),
    (0x8000_0001, 0, [false, false, true, true]),
];
/// `OSXSAVE` in ecx of leaf 1: the system has switched extended states on, and XCR0 can be read.
const OSXSAVE: u32 = 1 << 27;

/// The abilities of this processor, as words of bits; the last is XCR0, the states that the system saves.
#[must_use]
pub fn here() -> Vec<u64> {
    let mut words = Vec::new();
    for (leaf, subleaf, registers) in LEAVES {
        let most = __cpuid(leaf & 0x8000_0000).eax;
        let found = if leaf <= most {
            let found = __cpuid_count(leaf, subleaf);
            [found.eax, found.ebx, found.ecx, found.edx]
        } else {
            [0; 4]
        };
        let wanted = found
            .into_iter()
            .zip(registers)
            .filter(|(_, wanted)| *wanted);
        words.extend(wanted.map(|(bits, _)| u64::from(bits)));
    }
    words.push(states());
    words
}

fn states() -> u64 {
    if __cpuid(1).ecx & OSXSAVE == 0 {
        return 0;
    }
    #[target_feature(enable = "xsave")]
    fn read() -> u64 {
        // SAFETY: XCR0 exists where OSXSAVE is set.
        unsafe { _xgetbv(0) }
    }
    // SAFETY: OSXSAVE is set, so the instruction exists.
    unsafe { read() }
}

/// Whether this processor has all that another one had: how many abilities it lacks.
#[must_use]
pub fn lacking(had: &[u64], here: &[u64]) -> u32 {
    let zero = std::iter::repeat(&0);
    let pairs = had.iter().zip(here.iter().chain(zero));
    pairs.map(|(had, here)| (had & !here).count_ones()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_has_what_it_has() {
        let own = here();
        assert_eq!(lacking(&own, &own), 0);
        // SSE2 is part of the architecture: edx of leaf 1, bit 26.
        assert!(own.get(1).is_some_and(|edx| edx >> 26 & 1 == 1));
        let more: Vec<u64> = own.iter().map(|w| w | 1 << 63).collect();
        assert_eq!(lacking(&more, &own), own.len() as u32);
        assert_eq!(
            lacking(&own, &[]),
            own.iter().map(|w| w.count_ones()).sum::<u32>()
        );
    }
}
