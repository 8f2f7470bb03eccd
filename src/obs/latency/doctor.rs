//! LATENCY DOCTOR: what the kept events say, in words, and what to do about them.
use std::collections::BTreeMap;
use std::fmt::Write;

use crate::config::{P, Settings};
use crate::host::Series;

/// The report on all events, as of `now_s`.
pub fn report(all: &BTreeMap<&'static str, Series>, settings: &Settings, now_s: u64) -> String {
    let threshold_ms = settings.int(P::LATENCY_MONITOR_THRESHOLD);
    if all.is_empty() && threshold_ms == 0 {
        return "The latency monitor is off. Turn it on with CONFIG SET latency-monitor-threshold <milliseconds>.\n"
            .into();
    }
    if all.is_empty() {
        return format!(
            "Nothing took {threshold_ms} ms or longer since the monitor was turned on or reset.\n"
        );
    }
    let mut text = String::from("These events held the server up:\n\n");
    for (number, (event, series)) in all.iter().enumerate() {
        describe(&mut text, number + 1, event, series, now_s);
    }
    let advice: Vec<&str> = all.keys().flat_map(|event| advice(event, settings)).collect();
    if !advice.is_empty() {
        text.push_str("\nWhat may help:\n\n");
    }
    let mut given = Vec::new();
    for line in advice {
        if !given.contains(&line) {
            given.push(line);
            text.push_str("- ");
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

fn describe(text: &mut String, number: usize, event: &str, series: &Series, now_s: u64) {
    let samples = series.samples.len().max(1) as u64;
    let values = || series.samples.iter().map(|sample| sample.took_ms);
    let average = values().sum::<u64>() / samples;
    let deviation = values().map(|ms| ms.abs_diff(average)).sum::<u64>() / samples;
    let since_s = now_s.saturating_sub(series.samples.front().map_or(now_s, |sample| sample.at_s)).max(1);
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "{number}. {event}: {samples} seconds with samples, {average} ms on average (mean deviation {deviation} ms), \
         one in {:.2} s, worst ever {} ms.",
        since_s as f64 / samples as f64,
        series.worst_ms
    );
}

fn advice(event: &str, settings: &Settings) -> Vec<&'static str> {
    const LARGE: &str = "Delete large values with UNLINK, or set lazyfree-lazy-user-del, lazyfree-lazy-expire and \
                         lazyfree-lazy-eviction, so that their memory is freed in the background.";
    match event {
        "command" => vec![slow_log_advice(settings), LARGE],
        "fast-command" => vec![
            "Commands that do little took long: something else used the processor. Look for other processes on the \
             server's cores, for swapping, and for a host that is shared with too many others.",
        ],
        "expire-cycle" => {
            vec!["Many keys expire at the same time: spread their deadlines by a random part.", LARGE]
        }
        "eviction-cycle" | "eviction-del" => {
            vec![
                "Memory was short of a sudden: lower maxmemory in small steps, and avoid huge writes.",
                LARGE,
            ]
        }
        _ => Vec::new(),
    }
}

/// How to find slow commands in the slow log.
fn slow_log_advice(settings: &Settings) -> &'static str {
    let (slower_than_us, keep) = (settings.int(P::SLOWLOG_LOG_SLOWER_THAN), settings.int(P::SLOWLOG_MAX_LEN));
    if slower_than_us < 0 || keep == 0 {
        return "Turn the slow log on (slowlog-log-slower-than, slowlog-max-len) to learn which commands are slow.";
    }
    if slower_than_us / 1000 > settings.int(P::LATENCY_MONITOR_THRESHOLD) {
        return "Lower slowlog-log-slower-than to the threshold of this monitor, so that SLOWLOG GET has all commands \
                that it counts.";
    }
    "Look for slow commands with SLOWLOG GET, and for cheaper ones to put in their place."
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Sample;

    #[test]
    fn reports() {
        let mut settings = Settings::default();
        let mut all = BTreeMap::new();
        assert!(report(&all, &settings, 9).contains("is off"));
        settings.set(b"latency-monitor-threshold", &[b"5"]).unwrap();
        assert!(report(&all, &settings, 9).contains("Nothing took 5 ms"));
        let samples =
            [Sample { at_s: 1, took_ms: 10 }, Sample { at_s: 5, took_ms: 30 }].into_iter().collect();
        all.insert("command", Series { samples, worst_ms: 40 });
        let text = report(&all, &settings, 11);
        assert!(text.contains(
            "1. command: 2 seconds with samples, 20 ms on average (mean deviation 10 ms), one in 5.00 s, worst ever 40 ms."
        ));
        assert!(text.contains("Lower slowlog-log-slower-than") && text.contains("UNLINK"));
        settings.set(b"slowlog-log-slower-than", &[b"-1"]).unwrap();
        assert!(report(&all, &settings, 11).contains("Turn the slow log on"));
    }
}
