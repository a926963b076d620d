//! Texts of `order import`.

use super::Text;

#[rustfmt::skip]
texts! {
    // Invalid files and rows.
    COLUMN_UNKNOWN = "Unknown column. Start a heading with # for notes of your own.", "Columna desconocida. Para notas propias, empiece el encabezado con #.";
    COLUMN_REPEATED = "Repeated column.", "Columna repetida.";
    COLUMN_MISSING = "Missing column.", "Falta la columna.";
    INVALID_HEADINGS = "Invalid header row; nothing was sent.", "Fila de encabezados no válida; no se envió nada.";
    SEE_COLUMNS = "parcelo order template --csv prints a file with all columns.", "parcelo order template --csv muestra un archivo con todas las columnas.";
    WORKBOOK = "The file is a workbook (.xlsx, .xls or .ods), not CSV.", "El archivo es un libro de hojas de cálculo (.xlsx, .xls u .ods), no CSV.";
    OTHER_HEADINGS = "parcelo order template --csv prints a file with all columns. If the headings are your own, or the file lacks a value, --map-template prints a column map for --map; --preset reads a shop's export, and --sender gives the sender.", "parcelo order template --csv muestra un archivo con todas las columnas. Si los encabezados son propios o al archivo le falta un valor, --map-template muestra un mapa de columnas para --map; --preset lee la exportación de una tienda y --sender indica el remitente.";
    MAPPED_COLUMN_MISSING = "The file has no such column; the map takes {field} from it.", "El archivo no tiene esa columna; el mapa toma de ella {field}.";
    INVALID_MAP = "{file} is not a valid column map; nothing was sent.", "{file} no es un mapa de columnas válido; no se envió nada.";
    FIX_MAP = "Correct the map. parcelo order import FILE --map-template prints one to begin with.", "Corrija el mapa. parcelo order import ARCHIVO --map-template muestra uno para empezar.";
    MAP_LINE = "line {line}", "línea {line}";
    NOT_TOML = "Invalid TOML.", "TOML no válido.";
    UNKNOWN_SETTING = "Unknown setting.", "Ajuste desconocido.";
    UNKNOWN_FIELD = "Unknown field.", "Campo desconocido.";
    FIELD_REPEATED = "This field is already present under another name.", "Este campo ya está, con otro nombre.";
    ONE_OF = "Expected one of {values}.", "Se espera uno de {values}.";
    HEADINGS_EXPECTED = "Expected a heading in quotation marks, or a list of headings.", "Se espera un encabezado entre comillas o una lista de encabezados.";
    TABLE_EXPECTED = "Expected a table of fields.", "Se espera una tabla de campos.";
    VALUE_EXPECTED = "Expected a text or a number.", "Se espera un texto o un número.";
    MAP_OF_LINES = "Column maps and presets are for CSV files: a line of NDJSON names its fields itself.", "Los mapas de columnas y --preset son para archivos CSV: una línea de NDJSON ya nombra sus campos.";
    ONLY_SENDER_OF_LINES = "Use --sender only, or convert the file to CSV.", "Use solo --sender o convierta el archivo a CSV.";
    SENDER_UNREADABLE = "{file}: line {line} is not valid JSON or TOML.", "{file}: la línea {line} no es JSON o TOML válido.";
    INVALID_SENDER = "{file} is not a valid sender; nothing was sent.", "{file} no es un remitente válido; no se envió nada.";
    SENDER_FORM = "A sender has fullName, phone and address (line1, city, country), named as in an order.", "Un remitente tiene fullName, phone y address (line1, city, country), con los nombres de un pedido.";
    MUST_BE_EMPTY = "This column must be empty in an order that is sent.", "Esta columna debe estar vacía en un pedido que se envía.";
    CANCELLED = "The order was cancelled, so it is not sent.", "El pedido fue cancelado, así que no se envía.";
    ROWS_DIFFER = "Row {row} has the same reference and another value here: in the rows of one order, the order's own cells must be the same or empty.", "La fila {row} tiene la misma referencia y otro valor aquí: en las filas de un mismo pedido, las celdas del pedido deben ser iguales o estar vacías.";
    IN_ROW = "In row {row}: {message}", "En la fila {row}: {message}";
    MAP_INTRO = "A column map: parcelo order import FILE --map THIS_FILE --labels DIR", "Un mapa de columnas: parcelo order import ARCHIVO --map ESTE_ARCHIVO --labels DIRECTORIO";
    MAP_IGNORE = "Headings that are not imported; any other that is not below is an error.", "Encabezados que no se importan; cualquier otro que no esté abajo es un error.";
    MAP_ROWS = "\"product\" if an order's products are on rows of their own, with the same reference.", "\"product\" si los productos de un pedido están en filas propias, con la misma referencia.";
    MAP_COLUMNS = "field = \"heading\"; \"{A} {B}\" joins two, a list takes the first that is not empty. Lines with # are guesses: check them and remove the #.", "campo = \"encabezado\"; \"{A} {B}\" une dos, una lista toma el primero que no esté vacío. Las líneas con # son suposiciones: revíselas y quite el #.";
    MAP_FIELD = "field", "campo";
    MAP_DEFAULTS = "Values of fields that an order does not have; the sender can also be a file (--sender).", "Valores de los campos que un pedido no tiene; el remitente también puede ser un archivo (--sender).";
    BINARY_FILE = "The file is not text, or is UTF-16 without a byte order mark.", "El archivo no es texto, o es UTF-16 sin marca de orden de bytes.";
    READ_AS = "The file is read as {encoding}, because it is not UTF-8. If names have wrong letters, save it as CSV UTF-8, or name another --encoding.", "El archivo se lee como {encoding} porque no es UTF-8. Si los nombres tienen letras equivocadas, guárdelo como CSV UTF-8 o indique otra codificación con --encoding.";
    READ_BY_MARK = "The file is read as {encoding}, as its byte order mark says.", "El archivo se lee como {encoding}, como dice su marca de orden de bytes.";
    PLUS_ADDED = "The + was missing, as spreadsheets lose it; the number was read as {phone}. Format the column as text.", "Faltaba el +, que las hojas de cálculo suelen quitar; el número se leyó como {phone}. Dé formato de texto a la columna.";
    SHORTENED = "A spreadsheet shortened this number to {cell}. Format the column as text, and enter the number again.", "Una hoja de cálculo acortó este número a {cell}. Dé formato de texto a la columna y escriba el número de nuevo.";
    LOST_CHARACTER = "A character of this text was lost (it is U+FFFD, the replacement character): type the text again.", "Un carácter de este texto se perdió (es U+FFFD, el carácter de sustitución): escriba el texto de nuevo.";
    MISREAD = "This was probably \"{meant}\", and was read in the wrong encoding before it came into the file: save the original as UTF-8, or type the text again.", "Probablemente era “{meant}” y se leyó con una codificación equivocada antes de llegar al archivo: guarde el original como UTF-8 o escriba el texto de nuevo.";
    SAVE_UTF8 = "Save it as CSV UTF-8: in Excel with File, Save as.", "Guárdelo como CSV UTF-8: en Excel con Archivo, Guardar como.";
    NOT_UTF8 = "The cell is not UTF-8 text. Save the file as CSV UTF-8.", "La celda no es texto UTF-8. Guarde el archivo como CSV UTF-8.";
    TOO_MANY_CELLS = "The row has more cells than there are headings. A cell that contains the separator must be in quotes.", "La fila tiene más celdas que encabezados. Una celda que contiene el separador debe ir entre comillas.";
    OPEN_QUOTE = "A quote in this row is never closed: the rest of the file would be in its cell.", "Una comilla de esta fila nunca se cierra: el resto del archivo quedaría en su celda.";
    MULTILINE_CELL = "A cell of this row holds what look like further rows: a quotation mark is probably missing, and those rows were not read.", "Una celda de esta fila contiene lo que parecen más filas: probablemente falta una comilla y esas filas no se leyeron.";
    NOT_A_NUMBER = "Not a number: use digits and a decimal point, for example 1250 or 1.25.", "No es un número: use dígitos y un punto decimal, por ejemplo 1250 o 1.25.";
    AMBIGUOUS_NUMBER = "Ambiguous: this may be {whole} or {decimal}. Write the one that is meant, with a decimal point and without a separator of thousands.", "Ambiguo: puede ser {whole} o {decimal}. Escriba el que corresponda, con punto decimal y sin separador de miles.";
    LONG_LINE = "The line is longer than 1 MiB.", "La línea supera 1 MiB.";
    NO_REFERENCE = "A reference is required: it prevents the order from being created twice.", "Se necesita una referencia: evita que el pedido se cree dos veces.";
    CONFLICTING_ROW = "Row {row} has the same reference and different content.", "La fila {row} tiene la misma referencia y otro contenido.";
    SAME_ROW = "Same order as row {row}; it is sent once.", "Es el mismo pedido de la fila {row}; se envía una sola vez.";
    ROW_CHANGED = "An earlier run created this order as {number}, and the row has changed since; nothing was sent. To send the row, use a new reference for it and void {number}, unless it is void already; otherwise leave it as it is.", "Una ejecución anterior creó este pedido como {number} y la fila cambió desde entonces; no se envió nada. Para enviar la fila, use una referencia nueva y anule {number}, salvo que ya esté anulado; de lo contrario, déjela como está.";
    ORDER_EXISTS = "The order with the reference {reference} exists as {number}, with different content than this row; nothing was sent. To send the row, use a new reference for it and void {number}, unless it is void already; otherwise leave it as it is.", "El pedido con la referencia {reference} ya existe como {number}, con otro contenido que esta fila; no se envió nada. Para enviar la fila, use una referencia nueva y anule {number}, salvo que ya esté anulado; de lo contrario, déjela como está.";
    OUTCOME_UNKNOWN = "It was sent a day ago or earlier, and its outcome is unknown. Look for the reference {reference} among your orders; if it is not there, give the row a new reference.", "Se envió hace un día o más y el resultado es desconocido. Busque la referencia {reference} entre sus pedidos; si no está, dé a la fila una referencia nueva.";

    // The journal.
    JOURNAL_EXISTS = "{file} already exists: an import of this file was started earlier.", "{file} ya existe: ya se inició una importación de este archivo.";
    RESUME_OR_ELSEWHERE = "Add --resume to continue it; completed rows are not sent again. For another file with the same name, use another directory.", "Agregue --resume para continuarla; las filas completadas no se envían otra vez. Para otro archivo con el mismo nombre, use otro directorio.";
    JOURNAL_IN_USE = "{file} is in use: another import of this file is running.", "{file} está en uso: hay otra importación de este archivo en curso.";
    WAIT_FOR_OTHER = "Wait until it has finished.", "Espere a que termine.";
    INVALID_JOURNAL_LINE = "{file}: line {line} is not a valid journal entry.", "{file}: la línea {line} no es una entrada válida del registro.";
    RESTORE_JOURNAL = "Restore the file from a backup. Without it, it is unknown which rows were sent.", "Restaure el archivo de una copia de seguridad. Sin él no se sabe qué filas se enviaron.";
    JOURNAL_ELSEWHERE = "{file} belongs to an import to another service or environment: {service}", "{file} es de una importación a otro servicio o entorno: {service}";
    SAME_SERVICE = "Use the same address and a key of the same environment, or another directory.", "Use la misma dirección y una clave del mismo entorno, u otro directorio.";
    OTHER_API_KEY = "{file} belongs to an import that was started with another API key. Idempotency holds per API key: with this one, orders could be created a second time.", "{file} es de una importación iniciada con otra clave de API. La idempotencia vale por clave de API: con esta, los pedidos podrían crearse por segunda vez.";
    SAME_API_KEY = "Use the API key that started the import. If this is the same key with a new secret (rotated), add --key-rotated.", "Use la clave de API que inició la importación. Si es la misma clave con un secreto nuevo (rotada), agregue --key-rotated.";
    PARCELS_GONE = "{file} has parcels that do not exist any more, such as {number}: the sandbox was reset. Nothing was sent.", "{file} tiene paquetes que ya no existen, como {number}: se restableció el entorno de pruebas. No se envió nada.";
    REMOVE_JOURNAL = "To create the orders again, remove {file} or use another directory, and run the command without --resume.", "Para crear los pedidos otra vez, elimine {file} o use otro directorio y ejecute el comando sin --resume.";
    RESUMED = "Resuming. Orders that earlier runs created, and that are not sent again: {done}.", "Se continúa la importación. Pedidos que crearon ejecuciones anteriores y que no se envían otra vez: {done}.";
    ROWS_GONE = "Orders in the journal that are no longer in the file: {n}.", "Pedidos del registro que ya no están en el archivo: {n}.";

    // Progress and outcome.
    PROGRESS = "{done} of {all} rows processed: {good} succeeded, {bad} did not", "{done} de {all} filas procesadas: {good} correctas, {bad} no";
    TIME_LEFT = "about {left} left; {progress}", "faltan cerca de {left}; {progress}";
    FINISHING = "Finishing the rows in progress. Press Ctrl-C again to stop immediately.", "Terminando las filas en curso. Presione Ctrl-C otra vez para detenerse de inmediato.";
    INVALID_ROW_COUNT = "Invalid rows: {bad} of {all}; nothing was sent.", "Filas no válidas: {bad} de {all}; no se envió nada.";
    FIX_ROWS = "Correct these rows and try again.", "Corrija estas filas e inténtelo de nuevo.";
    DONE_ROWS = "{done} of {all} rows are done.", "Filas completadas: {done} de {all}.";
    EXISTING_ORDERS = "Orders known to exist: {n}.", "Pedidos que se sabe que existen: {n}.";
    RESULTS_IN = "{file} has the outcome of each row.", "{file} tiene el resultado de cada fila.";
    FIX_AND_RESUME = "Correct the failed rows and run the command again with --resume; completed rows are not sent again.", "Corrija las filas que fallaron y ejecute el comando de nuevo con --resume; las filas completadas no se envían otra vez.";
    CHECK_NETWORK = "Check the address and the network.", "Revise la dirección y la red.";
    RESUME_IMPORT = "Run the same command again with --resume; completed rows are not sent again.", "Ejecute el mismo comando otra vez con --resume; las filas completadas no se envían de nuevo.";
    MORE_ROWS = "… further rows: {n}.", "… otras filas: {n}.";

    // Headings.
    ROWS = "Rows", "Filas";
    MERGED_LABELS = "{labels} labels in the order of the file: {file}", "{labels} etiquetas en el orden del archivo: {file}";
    NOT_MERGED = "The orders were created, but not all labels were merged.", "Los pedidos se crearon, pero no se combinaron todas las etiquetas.";
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
    WARNED_ROWS = "With warnings", "Con avisos";
    WARNING = "warning: {message}", "aviso: {message}";
    ROW_NUMBER = "Row {row}", "Fila {row}";
}
