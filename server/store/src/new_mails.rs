//! Writing e-mails with the change that causes them.

use parcelo_domain::mail::{BURST_DELAY_MILLIS, NewMail};

use super::sql::{Sql, SqlResult, params};

/// Writes an e-mail, unless its parcel already has it.
pub(super) async fn insert(db: Sql<'_>, mail: &NewMail) -> SqlResult<()> {
    let params = params![
        mail.parcel,
        mail.sequence,
        mail.recipient.number(),
        mail.kind.number(),
        mail.at,
        mail.at.plus(BURST_DELAY_MILLIS)
    ];
    let sql = "INSERT INTO mails (parcel, sequence, recipient, kind, created_at, due) \
         VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING";
    db.execute(sql, params).await.map(drop)
}
