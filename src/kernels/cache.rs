//! Where compiled things are kept between runs.

use std::path::PathBuf;

/// The folder of one kind of them: below `LOOKBACK_CACHE_DIR`, or below the user's cache folder; nothing where
/// neither is.
pub(crate) fn folder(kind: &str) -> Option<PathBuf> {
    std::env::var_os("LOOKBACK_CACHE_DIR")
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
        .or_else(|| directories::ProjectDirs::from("", "", "lookback").map(|places| places.cache_dir().to_owned()))
        .map(|folder| folder.join(kind))
}
