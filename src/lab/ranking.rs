//! What came of a comparison: at each size the strategies from the best on, each with its ratio to the best.

use crate::lab::record::{Record, Row, Verdict};
use crate::strategy::StrategyChoice;
use std::fmt;

/// The strategies that computed the same, at every size at which there is something to compare.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranking {
    /// What was computed: "u32 sum, inclusive".
    pub scan: String,
    /// From the smallest on.
    pub sizes: Vec<SizeRanking>,
}

/// The strategies at one size.
#[derive(Debug, Clone, PartialEq)]
pub struct SizeRanking {
    /// Elements.
    pub n: u64,
    /// From the best on.
    pub ranks: Vec<Rank>,
    /// Strategies without any right result.
    pub not_right: Vec<&'static str>,
}

/// Strategies that did equally well, as far as the ratio shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rank {
    /// How many times as much as the best took.
    pub ratio: String,
    /// Each with what tells the best of its configurations from the others.
    pub names: Vec<String>,
}

impl Ranking {
    /// The rankings of a record, one a scan. What ran alone has none.
    pub fn all(record: &Record) -> Vec<Self> {
        let figure = figure_of(record);
        let mut rankings: Vec<(Self, Vec<&Row>)> = Vec::new();
        for row in &record.rows {
            let scan = row.scan_and_offsets();
            match rankings.iter_mut().find(|(ranking, _)| ranking.scan == scan) {
                Some((_, rows)) => rows.push(row),
                None => rankings.push((Self { scan, sizes: Vec::new() }, vec![row])),
            }
        }
        let mut rankings: Vec<Self> = rankings
            .into_iter()
            .map(|(ranking, rows)| {
                let mut sizes: Vec<u64> = rows.iter().map(|row| row.n).collect();
                sizes.sort_unstable();
                sizes.dedup();
                let at = |n| SizeRanking::new(n, &rows, figure);
                Self { sizes: sizes.into_iter().filter_map(at).collect(), ..ranking }
            })
            .collect();
        rankings.retain(|ranking| !ranking.sizes.is_empty());
        rankings
    }

    /// What the order goes by.
    pub fn yardstick(record: &Record) -> &'static str {
        if is_timed(record) {
            "the fastest first, with their time by that of the best"
        } else {
            "the fewest moves of elements first, those of spines included, with their number by that of the best; \
             this is traffic, and not the time of a GPU"
        }
    }
}

fn is_timed(record: &Record) -> bool {
    record.header.device.kind == "cuda"
}

/// What the order goes by: a time on a GPU; the CPU device's own time says nothing, its counts do.
fn figure_of(record: &Record) -> fn(&Row) -> Option<f64> {
    if is_timed(record) {
        |row| row.time_us
    } else {
        |row| Some(row.element_moves_per_element? + row.spine_moves_per_element.unwrap_or(0.0))
    }
}

impl SizeRanking {
    /// The strategies at a size; `None` where fewer than two have a figure.
    fn new(n: u64, rows: &[&Row], figure: fn(&Row) -> Option<f64>) -> Option<Self> {
        let rows: Vec<&Row> = rows.iter().copied().filter(|row| row.n == n).collect();
        let mut best: Vec<(f64, String)> = Vec::new();
        let mut not_right = Vec::new();
        for &choice in StrategyChoice::ALL {
            let mine: Vec<&Row> = rows.iter().copied().filter(|row| row.strategy == choice).collect();
            let right = mine.iter().copied().filter(|row| row.verified);
            let right: Vec<(f64, &Row)> = right.filter_map(|row| Some((figure(row)?, row))).collect();
            let fastest = right.iter().copied().min_by(|left, right| left.0.total_cmp(&right.0));
            match fastest.filter(|(value, _)| *value > 0.0) {
                // Where it does not matter which configuration it was, none is named.
                Some((value, row)) if right.iter().all(|(other, _)| *other == value) => {
                    best.push((value, row.strategy_with_choice()));
                }
                Some((value, row)) => best.push((value, row.strategy_with_choice() + &distinction(row, &right))),
                None if mine.iter().any(|row| matches!(row.verdict(), Verdict::Wrong | Verdict::Failed)) => {
                    not_right.push(choice.name());
                }
                None => {}
            }
        }
        // Stable: equal ones stay in the order of the documentation.
        best.sort_by(|left, right| left.0.total_cmp(&right.0));
        let least = best.first()?.0;
        let mut ranks: Vec<Rank> = Vec::new();
        for (value, name) in &best {
            let ratio = value / least;
            let ratio = if ratio < 99.95 { format!("{ratio:.2}") } else { format!("{ratio:.0}") };
            match ranks.last_mut() {
                Some(rank) if rank.ratio == ratio => rank.names.push(name.clone()),
                _ => ranks.push(Rank { ratio, names: vec![name.clone()] }),
            }
        }
        (best.len() > 1).then_some(Self { n, ranks, not_right })
    }

    /// Those that have no rank, in a sentence.
    pub fn without_rank(&self) -> String {
        format!("WRONG or FAILED: {}", self.not_right.join(", "))
    }
}

impl fmt::Display for Rank {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.ratio, self.names.join(", "))
    }
}

/// The choices of a row in which the other rows of its strategy differ from it: ", VT 16".
fn distinction(row: &Row, others: &[(f64, &Row)]) -> String {
    let choices = |row: &Row| {
        [
            row.vt.map(|vt| format!("VT {vt}")),
            row.block_threads.map(|threads| format!("{threads} threads")),
            row.pattern.map(|pattern| pattern.to_string()),
            row.composition.map(|composition| format!("in {composition}")),
            row.descriptor.map(|descriptor| descriptor.to_string()),
            row.tile_order.map(|order| order.to_string()),
        ]
    };
    let own = choices(row);
    let differs = |at: usize| others.iter().any(|(_, other)| choices(other)[at] != own[at]);
    let told: Vec<&str> = (0..own.len()).filter(|&at| differs(at)).filter_map(|at| own[at].as_deref()).collect();
    if told.is_empty() { String::new() } else { format!(" ({})", told.join(" ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::record::tests::{header, outcome, request, row_of};
    use crate::strategy::Strategy;

    fn row(strategy: Strategy, n: u64, vt: u32, time_us: f64) -> Row {
        let row = row_of(&request(strategy, n, vt), &outcome(n, true));
        Row { time_us: Some(time_us), ..row }
    }

    fn told(size: &SizeRanking) -> String {
        size.ranks.iter().map(Rank::to_string).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn strategies_are_ranked_by_time_on_a_gpu_each_by_its_best_configuration() {
        let mut record = Record::from(header("cuda"));
        record.rows = vec![
            row(Strategy::Lookback, 1000, 8, 4.0),
            row(Strategy::Lookback, 1000, 16, 2.0),
            row(Strategy::ReduceThenScan, 1000, 8, 5.0),
            row(Strategy::Naive, 1000, 8, 400.0),
            row(Strategy::Chained, 1000, 8, 2.0),
            row(Strategy::Blelloch, 1000, 8, 1.0),
            row(Strategy::OneWave, 1000, 8, 2.0).chosen_by_auto(),
            // Alone at its size.
            row(Strategy::Lookback, 2000, 8, 4.0),
        ];
        record.rows[5].verified = false;
        let rankings = Ranking::all(&record);
        assert_eq!(rankings.len(), 1);
        assert_eq!(rankings[0].scan, "u32 sum, inclusive");
        let [size] = &rankings[0].sizes[..] else { panic!("{rankings:?}") };
        assert_eq!(size.n, 1000);
        let auto_is_first = StrategyChoice::ALL[0] == StrategyChoice::Auto;
        let best = if auto_is_first {
            "auto: one-wave, chained, lookback (VT 16)"
        } else {
            "chained, lookback (VT 16), auto: one-wave"
        };
        assert_eq!(told(size), format!("1.00 {best}; 2.50 reduce-then-scan; 200 naive"));
        assert_eq!(size.not_right, ["blelloch"]);
    }

    #[test]
    fn on_the_cpu_device_moves_decide_and_its_own_time_nothing() {
        let mut record = Record::from(header("cpu"));
        for (strategy, moves, seconds) in
            [(Strategy::ReduceThenScan, 3.0, 1.0), (Strategy::Lookback, 2.0, 9.0), (Strategy::Sequential, 2.0, 5.0)]
        {
            for vt in [1, 8] {
                let mut row = row_of(&request(strategy, 1000, vt), &outcome(1000, false));
                row.element_moves_per_element = Some(moves);
                row.executor_seconds = Some(seconds);
                row.spine_moves_per_element = Some(if moves > 2.0 { 1.0 / f64::from(vt) } else { 0.0 });
                record.rows.push(row);
            }
        }
        let rankings = Ranking::all(&record);
        assert_eq!(told(&rankings[0].sizes[0]), "1.00 sequential, lookback; 1.56 reduce-then-scan (VT 8)");
        assert!(Ranking::yardstick(&record).contains("moves") && !Ranking::yardstick(&record).contains("fastest"));
        record.rows.retain(|row| row.strategy == StrategyChoice::Named(Strategy::Lookback));
        assert_eq!(Ranking::all(&record), []);
    }
}
