//! The time. Here it is the packet's: the capture's stamp or the burst's clock, whichever of the kernel's
//! clocks is asked.

use super::{family, helper, within};

family! {
    /// `ktime_get_ns`: the time in nanoseconds.
    ///
    /// `u64 bpf_ktime_get_ns(void)`. The kernel counts from boot; here it is the packet's time: the
    /// capture's stamp or the burst's clock.
    KTIME_GET_NS = helper(5, "ktime_get_ns", &[], within(0, i64::MAX)).time();

    /// `jiffies64`: the time in ticks.
    ///
    /// `u64 bpf_jiffies64(void)`. A tick is 4 ms (`CONFIG_HZ` 250) of the packet's time.
    JIFFIES64 = helper(118, "jiffies64", &[], within(0, i64::MAX)).time();

    /// `ktime_get_boot_ns`: the time in nanoseconds, time asleep included.
    ///
    /// `u64 bpf_ktime_get_boot_ns(void)`. Here the same as `ktime_get_ns`: the packet's time.
    KTIME_GET_BOOT_NS = helper(125, "ktime_get_boot_ns", &[], within(0, i64::MAX)).time();

    /// `ktime_get_coarse_ns`: the time in nanoseconds, cheaply.
    ///
    /// `u64 bpf_ktime_get_coarse_ns(void)`. Here the same as `ktime_get_ns`: the packet's time.
    KTIME_GET_COARSE_NS = helper(160, "ktime_get_coarse_ns", &[], within(0, i64::MAX)).time();

    /// `ktime_get_tai_ns`: the time in nanoseconds of International Atomic Time.
    ///
    /// `u64 bpf_ktime_get_tai_ns(void)`. Here the packet's time, as on a system that nobody has told the offset
    /// from UTC (the kernel's is 0 then).
    KTIME_GET_TAI_NS = helper(208, "ktime_get_tai_ns", &[], within(0, i64::MAX)).time();
}
