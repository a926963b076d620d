//! The words of `order import`.

use super::Text;

#[rustfmt::skip]
texts! {
    // What is wrong with the file or with a row.
    COLUMN_UNKNOWN = "There is no such column. A heading that begins with # is a note of your own.", "No existe esa columna. Un encabezado que empieza por # es una nota suya.";
    COLUMN_TWICE = "This column is there twice.", "Esta columna está dos veces.";
    COLUMN_MISSING = "This column is missing.", "Falta esta columna.";
    BAD_HEADER = "The file's headings are not right; nothing was sent.", "Los encabezados del archivo no son correctos; no se envió nada.";
    SEE_COLUMNS = "parcelo order template --csv prints a file with every column.", "parcelo order template --csv imprime un archivo con todas las columnas.";
    WIDE_TEXT = "The file is UTF-16, not UTF-8.", "El archivo es UTF-16, no UTF-8.";
    NO_TEXT = "The file is not text, or is UTF-16, not UTF-8.", "El archivo no es texto, o es UTF-16, no UTF-8.";
    ONE_DOCUMENT = "The file is one JSON document; an import takes an order on each line.", "El archivo es un solo documento JSON; una importación toma un pedido por línea.";
    LINE_BY_LINE = "jq -c . FILE writes an order on a line, jq -c '.[]' FILE those of an array; parcelo order create takes one order as it is.", "jq -c . ARCHIVO escribe un pedido en una línea, jq -c '.[]' ARCHIVO los de una lista; parcelo order create toma un pedido tal como está.";
    SAVE_UTF8 = "Save it as CSV UTF-8.", "Guárdelo como CSV UTF-8.";
    NOT_UTF8 = "The cell is not UTF-8 text: save the file as CSV UTF-8.", "La celda no es texto UTF-8: guarde el archivo como CSV UTF-8.";
    MANY_CELLS = "The row has more cells than there are headings: a cell that holds the separator must stand in quotes.", "La fila tiene más celdas que encabezados: una celda que contiene el separador debe ir entre comillas.";
    OPEN_QUOTE = "A cell of this row begins with a quote that is never closed: the rest of the file would be in it.", "Una celda de esta fila empieza con una comilla que nunca se cierra: el resto del archivo quedaría dentro.";
    LATE_QUOTE = "A cell of this row goes on over {n} more lines: if that is not meant, a quote is missing, and the rows on them were not read.", "Una celda de esta fila sigue durante {n} líneas más: si no es lo que quería, falta una comilla y no se leyeron las filas de esas líneas.";
    NO_NUMBER = "This is not a number: write digits and a decimal point, such as 1250 or 1.25.", "Esto no es un número: escriba cifras y un punto decimal, por ejemplo 1250 o 1.25.";
    LONG_LINE = "The line is longer than 1 MiB.", "La línea supera 1 MiB.";
    NO_REFERENCE = "A row needs a reference: it keeps the order from being created twice.", "Una fila necesita una referencia: evita que el pedido se cree dos veces.";
    CONFLICTING_ROW = "Row {row} has the same reference and another content.", "La fila {row} tiene la misma referencia y otro contenido.";
    SAME_ROW = "This is the same order as in row {row}; it is sent once.", "Es el mismo pedido que en la fila {row}; se envía una vez.";
    ROW_CHANGED = "An earlier run created this order as {number}, and the row says something else now; nothing was sent. Void it and give the row a new reference, or leave it.", "Una ejecución anterior creó este pedido como {number} y la fila ahora dice otra cosa; no se envió nada. Anúlelo y dé a la fila una referencia nueva, o déjelo.";
    UNCLEAR = "It was sent more than 24 hours ago, and it is not clear what came of it. Look at your orders with the reference {reference}; if it is not among them, give the row a new reference.", "Se envió hace más de 24 horas y no está claro qué resultó. Mire sus pedidos con la referencia {reference}; si no está entre ellos, dé a la fila una referencia nueva.";

    // The journal.
    JOURNAL_EXISTS = "{file} already exists: an import of this file was started earlier.", "{file} ya existe: ya se empezó a importar este archivo.";
    RESUME_OR_ELSEWHERE = "Add --resume to go on with it; rows that are done are not sent again. For another file of the same name, give another directory.", "Añada --resume para continuar; las filas hechas no se envían otra vez. Para otro archivo del mismo nombre, indique otro directorio.";
    JOURNAL_IN_USE = "{file} is in use: another import of this file is running.", "{file} está en uso: se está importando este archivo.";
    WAIT_FOR_OTHER = "Wait until it has ended.", "Espere a que termine.";
    INVALID_JOURNAL_LINE = "{file}: line {line} is not a valid journal entry.", "{file}: la línea {line} no es una entrada válida del diario.";
    RESTORE_JOURNAL = "Restore the file from a copy. Without it nobody knows which rows were sent.", "Restaure el archivo de una copia. Sin él no se sabe qué filas se enviaron.";
    JOURNAL_ELSEWHERE = "{file} is of an import to another service or environment: {service}", "{file} es de una importación a otro servicio o entorno: {service}";
    SAME_SERVICE = "Use the same address and a key of the same environment, or another directory.", "Use la misma dirección y una clave del mismo entorno, u otro directorio.";
    OTHER_API_KEY = "{file} belongs to an import that was started with another API key. Idempotency holds per API key: with this one, orders could be created a second time.", "{file} es de una importación iniciada con otra clave de API. La idempotencia vale por clave de API: con esta, los pedidos podrían crearse por segunda vez.";
    SAME_API_KEY = "Use the API key that started the import. If this is the same key with a new secret (rotated), add --key-rotated.", "Use la clave de API que inició la importación. Si es la misma clave con un secreto nuevo (rotada), añada --key-rotated.";
    RESUMED = "Going on: {done} order(s) were created by earlier runs. They are not sent again where their rows are unchanged.", "Se continúa: las ejecuciones anteriores crearon {done} pedido(s). No se envían otra vez si sus filas no cambiaron.";
    ROWS_GONE = "{n} order(s) of the journal are not in the file any more.", "{n} pedido(s) del diario ya no están en el archivo.";

    // How it goes and how it ends.
    PROGRESS = "{done} of {all} rows: {good} done, {bad} not", "{done} de {all} filas: {good} hechas, {bad} no";
    LEFT = "{progress}; about {left} left", "{progress}; faltan unos {left}";
    FINISHING = "Finishing the rows that are under way. Press Ctrl-C again to stop at once.", "Terminando las filas en curso. Pulse Ctrl-C otra vez para parar de inmediato.";
    BAD_ROWS = "{bad} of {all} rows are not valid; nothing was sent.", "{bad} de {all} filas no son válidas; no se envió nada.";
    FIX_ROWS = "Correct these rows and run the command again.", "Corrija estas filas y ejecute el comando de nuevo.";
    PARTLY_IMPORTED = "{done} of {all} rows are done; {file} says what became of each.", "{done} de {all} filas están hechas; {file} dice qué pasó con cada una.";
    FIX_AND_RESUME = "Correct the rows that failed and run the command again with --resume; rows that are done are not sent again.", "Corrija las filas que fallaron y ejecute el comando de nuevo con --resume; las filas hechas no se envían otra vez.";
    CHECK_NETWORK = "Check the address and the network.", "Revise la dirección y la red.";
    RESUME_IMPORT = "Run the same command again with --resume; rows that are done are not sent again.", "Ejecute el mismo comando otra vez con --resume; las filas hechas no se envían de nuevo.";
    MORE_FAULTS = "… and {n} more.", "… y {n} más.";

    // Headings.
    ROWS = "Rows", "Filas";
    RESULTS_FILE = "Results", "Resultados";
    MADE = "Created", "Creados";
    EXISTED = "Existed already", "Ya existían";
    BEFORE_THIS = "Done by an earlier run", "Hechos antes";
    REPEATED = "Repeated rows", "Filas repetidas";
    VALID_ROWS = "Valid", "Válidas";
    INVALID_ROWS = "Not valid", "No válidas";
    FAILED_ROWS = "Failed", "Fallidas";
    NO_LABEL = "Without a label", "Sin etiqueta";
    UNKNOWN_ROWS = "Outcome unknown", "Resultado desconocido";
    UNSENT_ROWS = "Not sent", "Sin enviar";
    ROW_OF = "Row {row}", "Fila {row}";
}

/// What the command does, by its path.
#[rustfmt::skip]
pub(crate) const COMMAND_HELP: &[(&str, Text)] = &[
    ("parcelo order import", Text { en: "Create the orders of a CSV or NDJSON file, and save their labels", es: "Crear los pedidos de un archivo CSV o NDJSON y guardar sus etiquetas" }),
];

/// What each of its arguments means, by its id.
#[rustfmt::skip]
pub(crate) const ARGUMENT_HELP: &[(&str, Text)] = &[
    ("rows", Text { en: "Orders: CSV with a row of headings, or one JSON order a line; - reads standard input", es: "Pedidos: CSV con una fila de encabezados, o un pedido JSON por línea; - lee la entrada estándar" }),
    ("labels", Text { en: "Where labels, journal and results go; it is made if need be", es: "Dónde van las etiquetas, el diario y los resultados; se crea si hace falta" }),
    ("resume", Text { en: "Go on where an earlier import of this file was interrupted", es: "Continuar donde se interrumpió una importación anterior de este archivo" }),
    ("key_rotated", Text { en: "With --resume: the API key got a new secret since the import was started", es: "Con --resume: la clave de API recibió un secreto nuevo desde que se inició la importación" }),
    ("concurrency", Text { en: "Rows under way at once, 1-64 [default: 16]", es: "Filas en curso a la vez, 1-64 [por defecto: 16]" }),
    ("all_or_nothing", Text { en: "Create nothing unless every row is valid", es: "No crear nada si alguna fila no es válida" }),
    ("quiet", Text { en: "Show no progress", es: "No mostrar el avance" }),
    ("csv", Text { en: "Print a CSV file for order import instead", es: "Imprimir en su lugar un archivo CSV para order import" }),
];

/// The names of its values.
#[rustfmt::skip]
pub(crate) const VALUE_NAMES: &[(&str, Text)] = &[
    ("DIR", Text { en: "DIR", es: "DIRECTORIO" }),
];
