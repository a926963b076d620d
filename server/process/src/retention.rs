//! A folder of backups: their names, which hold the time, and the deletion of the oldest.

use std::{
    fs, io,
    num::NonZeroUsize,
    path::{Path, PathBuf},
};

use chrono::NaiveDateTime;
use parcelo_domain::Millis;
use parcelo_system::clock::{Clock, SystemClock};

use super::Failure;

/// Format of a time in a file's name. Names in it sort by time, and no system forbids its characters.
const TIME_FORMAT: &str = "%Y-%m-%dT%H-%M-%SZ";

/// Returns a time as it is in the names of files.
pub(super) fn time_in_name(now: Millis) -> String {
    now.to_utc().format(TIME_FORMAT).to_string()
}

/// A folder with backups of one database, and perhaps other files.
pub(super) struct BackupFolder<'f> {
    folder: &'f Path,
    /// The name of the database file without its extension, so that two databases can share a folder.
    stem: String,
}

impl<'f> BackupFolder<'f> {
    pub(super) fn new(folder: &'f Path, database: &Path) -> Self {
        let stem = database.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Self { folder, stem }
    }

    /// Returns the path of a backup that is made now.
    pub(super) fn new_file(&self, now: Millis) -> PathBuf {
        self.folder.join(format!("{}-{}.db", self.stem, time_in_name(now)))
    }

    /// Deletes the oldest backups, so that `keep` are left, and returns their paths. The newest is kept even if the
    /// clock was set back since the others were made. Files with other names are not touched.
    pub(super) fn delete_oldest(
        &self,
        newest: &Path,
        keep: NonZeroUsize,
    ) -> Result<Vec<String>, Failure> {
        let failed = |path: &Path, source| Failure::OldBackups { path: path.to_owned(), source };
        let all = self.list().map_err(|error| failed(self.folder, error))?;
        // A backup that another run has made meanwhile is later, but not of a wrong clock.
        let now = self.new_file(SystemClock.now());
        let old = oldest(all, newest, newest.max(&now), keep);
        for file in &old {
            fs::remove_file(file).map_err(|error| failed(file, error))?;
        }
        Ok(old.iter().map(|file| file.display().to_string()).collect())
    }

    fn list(&self) -> io::Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(self.folder)? {
            let entry = entry?;
            let is_ours = entry.file_name().to_str().is_some_and(|name| self.is_backup(name));
            if is_ours && entry.file_type()?.is_file() {
                found.push(entry.path());
            }
        }
        Ok(found)
    }

    fn is_backup(&self, name: &str) -> bool {
        let time = name.strip_prefix(&*self.stem).and_then(|rest| rest.strip_prefix('-'));
        time.and_then(|rest| rest.strip_suffix(".db")).is_some_and(|time| {
            // Without the second comparison, other spellings of a time would count, such as one without zeros.
            NaiveDateTime::parse_from_str(time, TIME_FORMAT)
                .is_ok_and(|parsed| parsed.format(TIME_FORMAT).to_string() == time)
        })
    }
}

/// Returns the backups of a folder to delete, so that `keep` are left. `newest` is the one just made, and `now` the
/// latest name that the present time allows.
fn oldest(mut all: Vec<PathBuf>, newest: &Path, now: &Path, keep: NonZeroUsize) -> Vec<PathBuf> {
    all.retain(|file| file != newest);
    // A backup with a later name than the present time's is from before the clock was set back. It goes before all
    // others, or it would take the place of a newer one at every backup until the time in its name.
    all.sort_by_key(|file| (file.as_path() <= now, file.clone()));
    all.truncate((all.len() + 1).saturating_sub(keep.get()));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }

    #[test]
    fn a_backup_dated_in_the_future_goes_before_any_other() {
        let backups = BackupFolder::new(Path::new("/backups"), Path::new("parcelo.db"));
        let file = |year: i64| backups.new_file(Millis(year * 365 * Millis::DAY));
        // The years of all backups, of the one just made, the number to keep, and the years of those that go.
        let table: [(&[i64], i64, usize, &[i64]); 6] = [
            (&[1, 2, 3, 4], 4, 3, &[1]),
            (&[1, 2, 3, 9], 3, 3, &[9]),
            (&[1, 2, 3, 8, 9], 3, 2, &[8, 9, 1]),
            (&[1, 2, 3, 8, 9], 3, 4, &[8]),
            (&[1, 2, 3, 9], 3, 4, &[]),
            (&[0, 7, 8, 9], 0, 3, &[7]),
        ];
        for (all, newest, keep, expected) in table {
            let files = |years: &[i64]| years.iter().copied().map(file).collect::<Vec<_>>();
            let (newest_file, keep) = (file(newest), NonZeroUsize::new(keep).unwrap());
            let deleted = oldest(files(all), &newest_file, &newest_file, keep);
            assert_eq!(deleted, files(expected), "{all:?}, {newest} is new, {keep} are kept");
        }
        // Another run made the fourth year's meanwhile.
        let (newest, now, keep) = (file(3), file(5), NonZeroUsize::new(2).unwrap());
        assert_eq!(oldest([1, 3, 4, 9].map(file).to_vec(), &newest, &now, keep), [9, 1].map(file));
    }

    #[test]
    fn only_the_oldest_backups_of_the_database_are_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let others = [
            "parcelo-2026-01-01T03-00-00Z.db.damaged",
            "parcelo-2026-01-01T03-00-00Z.db-wal",
            "parcelo-2026-1-01T03-00-00Z.db",
            "parcelo-2026-02-30T03-00-00Z.db",
            "parcelo-by-hand.db",
            "parcelo.db",
            "shop-2026-01-01T03-00-00Z.db",
            "xparcelo-2026-01-01T03-00-00Z.db",
        ];
        let backups = BackupFolder::new(folder.path(), Path::new("/data/parcelo.db"));
        let day = 24 * 60 * 60 * 1_000;
        let made: Vec<_> = (0..4).map(|n| backups.new_file(Millis(n * day))).collect();
        for file in others.iter().map(|name| folder.path().join(name)).chain(made.clone()) {
            fs::write(file, "").unwrap();
        }
        fs::create_dir(backups.new_file(Millis(-day))).unwrap();
        let keep = |n| NonZeroUsize::new(n).unwrap();
        assert_eq!(backups.delete_oldest(&made[3], keep(4)).unwrap(), Vec::<String>::new());
        let deleted = backups.delete_oldest(&made[3], keep(2)).unwrap();
        assert_eq!(deleted, [&made[0], &made[1]].map(|file| file.display().to_string()));
        // The clock was set back: the new backup has the oldest name.
        assert_eq!(backups.delete_oldest(&made[2], keep(1)).unwrap().len(), 1);
        let mut expected = Vec::from(others.map(str::to_owned));
        expected.push("parcelo-1969-12-31T00-00-00Z.db".to_owned());
        expected.push("parcelo-1970-01-03T00-00-00Z.db".to_owned());
        expected.sort();
        assert_eq!(names(folder.path()), expected);
    }
}
