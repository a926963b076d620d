//! Texts of `order import`.

use super::Text;

#[rustfmt::skip]
texts! {
    // Invalid files and rows.
    COLUMN_UNKNOWN = "Unknown column. Start a heading with # for notes of your own.", "Columna desconocida. Empiece un encabezado con # para notas propias.";
    COLUMN_REPEATED = "Repeated column.", "Columna repetida.";
    COLUMN_MISSING = "Missing column.", "Falta la columna.";
    INVALID_HEADINGS = "Invalid header row; nothing was sent.", "Fila de encabezados no válida; no se envió nada.";
    SEE_COLUMNS = "parcelo order template --csv prints a file with all columns.", "parcelo order template --csv imprime un archivo con todas las columnas.";
    UTF16_FILE = "The file is UTF-16, not UTF-8.", "El archivo es UTF-16, no UTF-8.";
    BINARY_FILE = "The file is not text, or is UTF-16, not UTF-8.", "El archivo no es texto, o es UTF-16, no UTF-8.";
    ONE_DOCUMENT = "The file is a single JSON document; an import needs one order per line.", "El archivo es un único documento JSON; una importación necesita un pedido por línea.";
    LINE_BY_LINE = "Convert an order with jq -c . FILE, an array with jq -c '.[]' FILE; parcelo order create takes a single order as it is.", "Convierta un pedido con jq -c . ARCHIVO, una lista con jq -c '.[]' ARCHIVO; parcelo order create acepta un solo pedido tal como está.";
    SAVE_UTF8 = "Save it as CSV UTF-8.", "Guárdelo como CSV UTF-8.";
    NOT_UTF8 = "The cell is not UTF-8 text. Save the file as CSV UTF-8.", "La celda no es texto UTF-8. Guarde el archivo como CSV UTF-8.";
    TOO_MANY_CELLS = "The row has more cells than there are headings. A cell that contains the separator must be in quotes.", "La fila tiene más celdas que encabezados. Una celda que contiene el separador debe ir entre comillas.";
    OPEN_QUOTE = "A quote in this row is never closed: the rest of the file would be in its cell.", "Una comilla de esta fila nunca se cierra: el resto del archivo quedaría en su celda.";
    MULTILINE_CELL = "A cell of this row spans {n} more line(s). If that is not intended, a quote is missing, and the rows on these lines were not read.", "Una celda de esta fila ocupa {n} línea(s) más. Si no es intencionado, falta una comilla y no se leyeron las filas de esas líneas.";
    NOT_A_NUMBER = "Not a number: use digits and a decimal point, for example 1250 or 1.25.", "No es un número: use cifras y un punto decimal, por ejemplo 1250 o 1.25.";
    LONG_LINE = "The line is longer than 1 MiB.", "La línea supera 1 MiB.";
    NO_REFERENCE = "A reference is required: it prevents the order from being created twice.", "Se necesita una referencia: evita que el pedido se cree dos veces.";
    CONFLICTING_ROW = "Row {row} has the same reference and different content.", "La fila {row} tiene la misma referencia y otro contenido.";
    SAME_ROW = "Same order as row {row}; it is sent once.", "Mismo pedido que la fila {row}; se envía una vez.";
    ROW_CHANGED = "An earlier run created this order as {number}, and the row has changed since; nothing was sent. Void that order and give the row a new reference, or leave it.", "Una ejecución anterior creó este pedido como {number} y la fila ha cambiado desde entonces; no se envió nada. Anule ese pedido y dé a la fila una referencia nueva, o déjelo.";
    OUTCOME_UNKNOWN = "It was sent more than 24 hours ago and its outcome is unknown. Look for the reference {reference} among your orders; if it is not there, give the row a new reference.", "Se envió hace más de 24 horas y el resultado es desconocido. Busque la referencia {reference} entre sus pedidos; si no está, dé a la fila una referencia nueva.";

    // The journal.
    JOURNAL_EXISTS = "{file} already exists: an import of this file was started earlier.", "{file} ya existe: ya se inició una importación de este archivo.";
    RESUME_OR_ELSEWHERE = "Add --resume to continue it; completed rows are not sent again. For another file with the same name, use another directory.", "Añada --resume para continuarla; las filas completadas no se envían otra vez. Para otro archivo con el mismo nombre, use otro directorio.";
    JOURNAL_IN_USE = "{file} is in use: another import of this file is running.", "{file} está en uso: hay otra importación de este archivo en curso.";
    WAIT_FOR_OTHER = "Wait until it has finished.", "Espere a que termine.";
    INVALID_JOURNAL_LINE = "{file}: line {line} is not a valid journal entry.", "{file}: la línea {line} no es una entrada válida del diario.";
    RESTORE_JOURNAL = "Restore the file from a backup. Without it, it is unknown which rows were sent.", "Restaure el archivo de una copia de seguridad. Sin él no se sabe qué filas se enviaron.";
    JOURNAL_ELSEWHERE = "{file} belongs to an import to another service or environment: {service}", "{file} es de una importación a otro servicio o entorno: {service}";
    SAME_SERVICE = "Use the same address and a key of the same environment, or another directory.", "Use la misma dirección y una clave del mismo entorno, u otro directorio.";
    OTHER_API_KEY = "{file} belongs to an import that was started with another API key. Idempotency holds per API key: with this one, orders could be created a second time.", "{file} es de una importación iniciada con otra clave de API. La idempotencia vale por clave de API: con esta, los pedidos podrían crearse por segunda vez.";
    SAME_API_KEY = "Use the API key that started the import. If this is the same key with a new secret (rotated), add --key-rotated.", "Use la clave de API que inició la importación. Si es la misma clave con un secreto nuevo (rotada), añada --key-rotated.";
    RESUMED = "Resuming: {done} order(s) were created by earlier runs and are not sent again.", "Se continúa: las ejecuciones anteriores crearon {done} pedido(s), que no se envían otra vez.";
    ROWS_GONE = "{n} order(s) in the journal are no longer in the file.", "{n} pedido(s) del diario ya no están en el archivo.";

    // Progress and outcome.
    PROGRESS = "{done} of {all} rows processed: {good} succeeded, {bad} did not", "{done} de {all} filas procesadas: {good} correctas, {bad} no";
    TIME_LEFT = "about {left} left; {progress}", "faltan unos {left}; {progress}";
    FINISHING = "Finishing the rows in progress. Press Ctrl-C again to stop immediately.", "Terminando las filas en curso. Pulse Ctrl-C otra vez para detenerse de inmediato.";
    INVALID_ROW_COUNT = "{bad} of {all} row(s) are invalid; nothing was sent.", "{bad} de {all} fila(s) no son válidas; no se envió nada.";
    FIX_ROWS = "Correct these rows and try again.", "Corrija estas filas e inténtelo de nuevo.";
    PARTLY_IMPORTED = "{done} of {all} rows are done; {file} has the outcome of each row.", "{done} de {all} filas están hechas; {file} tiene el resultado de cada fila.";
    FIX_AND_RESUME = "Correct the failed rows and run the command again with --resume; completed rows are not sent again.", "Corrija las filas que fallaron y ejecute el comando de nuevo con --resume; las filas completadas no se envían otra vez.";
    CHECK_NETWORK = "Check the address and the network.", "Revise la dirección y la red.";
    RESUME_IMPORT = "Run the same command again with --resume; completed rows are not sent again.", "Ejecute el mismo comando otra vez con --resume; las filas completadas no se envían de nuevo.";
    MORE_ROWS = "… and {n} more row(s).", "… y {n} fila(s) más.";

    // Headings.
    ROWS = "Rows", "Filas";
    RESULTS_FILE = "Results", "Resultados";
    CREATED_ROWS = "Created", "Creados";
    REPLAYED_ROWS = "Already existed", "Ya existían";
    DONE_BEFORE_ROWS = "Done by an earlier run", "Hechos por una ejecución anterior";
    REPEATED_ROWS = "Repeated rows", "Filas repetidas";
    VALID_ROWS = "Valid", "Válidas";
    INVALID_ROWS = "Invalid", "No válidas";
    FAILED_ROWS = "Failed", "Fallidas";
    LABEL_MISSING_ROWS = "Without a label", "Sin etiqueta";
    UNKNOWN_ROWS = "Outcome unknown", "Resultado desconocido";
    NOT_SENT_ROWS = "Not sent", "Sin enviar";
    ROW_NUMBER = "Row {row}", "Fila {row}";
}
