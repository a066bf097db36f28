//! Which faults a table is of.

use super::draw::Draw;
use crate::kernels::mutant::{Mutant, MutantError};
use std::collections::BTreeSet;

/// The faults that these words name, in the order of all, and so many of the others, drawn by the seed. A word is a
/// fault's name, a kernel file or folder (`cuda/scan`), or a rule (`dropped`), or `by-hand` for those of none. Without words and number it is all.
///
/// # Errors
/// When a word names none.
pub fn select(words: &[String], sample: Option<u64>, seed: u64) -> Result<Vec<&'static Mutant>, MutantError> {
    let all = Mutant::all()?;
    if words.is_empty() && sample.is_none() {
        return Ok(all.iter().collect());
    }
    let mut chosen = BTreeSet::new();
    for word in words {
        let named: Vec<_> = (0..all.len()).filter(|&index| is_named(&all[index], word)).collect();
        if named.is_empty() {
            return Err(MutantError::NoneOf { word: word.clone() });
        }
        chosen.extend(named);
    }
    let mut draw = Draw::new(seed);
    for _ in 0..sample.unwrap_or(0) {
        let others: Vec<usize> = (0..all.len()).filter(|index| !chosen.contains(index)).collect();
        if others.is_empty() {
            break;
        }
        chosen.insert(draw.of(&others));
    }
    Ok(chosen.into_iter().map(|index| &all[index]).collect())
}

fn is_named(mutant: &Mutant, word: &str) -> bool {
    let folder = word.trim_end_matches('/');
    let is_below = || mutant.file.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let is_by_hand = word == "by-hand" && mutant.rule.is_none();
    mutant.name == word || mutant.rule == Some(word) || is_by_hand || is_below()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(words: &[&str], sample: Option<u64>, seed: u64) -> Vec<&'static str> {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        select(&words, sample, seed).expect("all are named").iter().map(|mutant| mutant.name.as_str()).collect()
    }

    #[test]
    fn words_name_faults_files_folders_and_rules() {
        let all = Mutant::all().expect("readable");
        assert_eq!(names(&[], None, 0).len(), all.len());
        assert_eq!(names(&["relaxed_tag"], None, 0), ["relaxed_tag"]);
        let of_file = names(&["cuda/scan/lookback.cuh"], None, 0);
        let of_folder = names(&["cuda/scan/"], None, 0);
        assert!(!of_file.is_empty() && of_file.len() < of_folder.len() && of_folder.len() < all.len());
        assert!(of_file.iter().all(|name| of_folder.contains(name)));
        assert!(names(&["dropped"], None, 0).iter().all(|name| name.ends_with("_dropped")));
        let by_rule = Mutant::all().expect("readable").iter().filter(|mutant| mutant.rule.is_some()).count();
        assert_eq!(names(&["by-hand"], None, 0).len() + by_rule, all.len());
        for word in ["cuda/sca", "none_such", ""] {
            assert!(matches!(select(&[word.to_owned()], None, 0), Err(MutantError::NoneOf { .. })), "{word}");
        }
    }

    #[test]
    fn a_sample_is_of_the_others_and_follows_from_its_seed() {
        let sample = names(&["relaxed_tag"], Some(10), 1);
        assert_eq!(sample.len(), 11);
        assert_eq!(sample, names(&["relaxed_tag"], Some(10), 1));
        assert_ne!(sample, names(&["relaxed_tag"], Some(10), 2));
        assert_eq!(names(&[], Some(1 << 40), 1).len(), Mutant::all().expect("readable").len());
    }
}
