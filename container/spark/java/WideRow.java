package homeport.spark;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.BinaryView;
import org.apache.spark.unsafe.types.CalendarInterval;
import org.apache.spark.unsafe.types.TimestampNanosVal;
import org.apache.spark.unsafe.types.UTF8String;
import org.apache.spark.unsafe.types.VariantVal;

/**
 * A row of all columns of a source over one that has those alone which a plan reads.
 *
 * <p>What is not there is null, and empty or zero to a reader that does not ask. The same object
 * stands for one row after another.
 */
final class WideRow extends InternalRow {
    private static final int ABSENT = -1;
    private static final byte[] NO_BYTES = new byte[0];

    private final int[] places;
    private final int[] widths;
    private final WideRow[] structs;
    private InternalRow row;

    /** Columns are found by their names; a struct may have fewer fields too. */
    WideRow(StructType wide, StructType narrow) {
        StructField[] all = wide.fields();
        StructField[] kept = narrow.fields();
        places = new int[all.length];
        widths = new int[all.length];
        structs = new WideRow[all.length];
        for (int i = 0; i < all.length; i++) {
            places[i] = ABSENT;
            for (int j = 0; j < kept.length; j++) {
                if (all[i].name().equals(kept[j].name())) {
                    places[i] = j;
                    nest(i, all[i].dataType(), kept[j].dataType());
                }
            }
        }
    }

    private void nest(int index, DataType wide, DataType narrow) {
        if (narrow instanceof StructType) {
            StructType inner = (StructType) narrow;
            widths[index] = inner.fields().length;
            if (widths[index] < ((StructType) wide).fields().length) {
                structs[index] = new WideRow((StructType) wide, inner);
            }
        }
    }

    /** This, over {@code narrow}. */
    WideRow over(InternalRow narrow) {
        row = narrow;
        return this;
    }

    private boolean has(int index) {
        return places[index] != ABSENT;
    }

    public int numFields() {
        return places.length;
    }

    public boolean isNullAt(int i) {
        return !has(i) || row.isNullAt(places[i]);
    }

    public boolean getBoolean(int i) {
        return has(i) && row.getBoolean(places[i]);
    }

    public byte getByte(int i) {
        return has(i) ? row.getByte(places[i]) : (byte) 0;
    }

    public short getShort(int i) {
        return has(i) ? row.getShort(places[i]) : (short) 0;
    }

    public int getInt(int i) {
        return has(i) ? row.getInt(places[i]) : 0;
    }

    public long getLong(int i) {
        return has(i) ? row.getLong(places[i]) : 0L;
    }

    public float getFloat(int i) {
        return has(i) ? row.getFloat(places[i]) : 0.0f;
    }

    public double getDouble(int i) {
        return has(i) ? row.getDouble(places[i]) : 0.0;
    }

    public Decimal getDecimal(int i, int precision, int scale) {
        return has(i) ? row.getDecimal(places[i], precision, scale) : null;
    }

    public UTF8String getUTF8String(int i) {
        return has(i) ? row.getUTF8String(places[i]) : UTF8String.EMPTY_UTF8;
    }

    public byte[] getBinary(int i) {
        return has(i) ? row.getBinary(places[i]) : NO_BYTES;
    }

    public BinaryView getBinaryView(int i) {
        return has(i) ? row.getBinaryView(places[i]) : null;
    }

    public CalendarInterval getInterval(int i) {
        return has(i) ? row.getInterval(places[i]) : null;
    }

    public TimestampNanosVal getTimestampNTZNanos(int i) {
        return has(i) ? row.getTimestampNTZNanos(places[i]) : null;
    }

    public TimestampNanosVal getTimestampLTZNanos(int i) {
        return has(i) ? row.getTimestampLTZNanos(places[i]) : null;
    }

    public VariantVal getVariant(int i) {
        return has(i) ? row.getVariant(places[i]) : null;
    }

    public InternalRow getStruct(int i, int numFields) {
        if (!has(i)) {
            return null;
        }
        InternalRow inner = row.getStruct(places[i], widths[i]);
        return inner == null || structs[i] == null ? inner : structs[i].over(inner);
    }

    public ArrayData getArray(int i) {
        return has(i) ? row.getArray(places[i]) : null;
    }

    public MapData getMap(int i) {
        return has(i) ? row.getMap(places[i]) : null;
    }

    public Object get(int i, DataType type) {
        if (isNullAt(i)) {
            return null;
        }
        boolean isStruct = type instanceof StructType;
        return isStruct ? (Object) getStruct(i, widths[i]) : row.get(places[i], type);
    }

    public void setNullAt(int i) {
        throw new UnsupportedOperationException();
    }

    public void update(int i, Object value) {
        throw new UnsupportedOperationException();
    }

    public InternalRow copy() {
        throw new UnsupportedOperationException();
    }
}
