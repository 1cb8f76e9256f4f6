package homeport.spark;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.CreateNamedStruct;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GetStructField;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.IsNotNull;
import org.apache.spark.sql.catalyst.expressions.JsonToStructs;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.Or;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.types.BinaryType$;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataType$;
import org.apache.spark.sql.types.StringType$;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Some;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;

/**
 * Plans in which {@code from_json} finds objects that were read before Spark.
 *
 * <p>A column of a source, as {@code value}, then comes with two more: {@code value.json} has the
 * objects that were read, {@code value.rest} each other value. Where the first is null, Spark parses
 * the second. It changes optimized plans, in which each {@code from_json} has only the fields that
 * are used, and most are right above their source.
 */
final class ParsedJson {
    /** {source, a tab, column: the fields that are used of it; null: they contradict each other}. */
    private final Map types = new TreeMap();
    /** Null: nothing changes. */
    private final SparkSession session;

    private ParsedJson(SparkSession session) {
        this.session = session;
    }

    /** A line for each column: its source, its name, and the type of the objects, in JSON. */
    static String wanted(LogicalPlan optimized) {
        ParsedJson found = new ParsedJson(null);
        found.over(optimized);
        StringBuilder lines = new StringBuilder();
        Iterator all = found.types.entrySet().iterator();
        while (all.hasNext()) {
            Map.Entry one = (Map.Entry) all.next();
            if (one.getValue() != null) {
                lines.append(one.getKey()).append('\t');
                lines.append(((StructType) one.getValue()).json()).append('\n');
            }
        }
        return lines.toString();
    }

    /** The plan for sources that have the two columns for each of these lines. */
    static LogicalPlan over(LogicalPlan optimized, String lines, SparkSession session) {
        ParsedJson change = new ParsedJson(session);
        String[] all = lines.split("\n");
        for (int index = 0; index < all.length; index++) {
            int end = all[index].indexOf('\t', all[index].indexOf('\t') + 1);
            String type = all[index].substring(end + 1);
            change.types.put(all[index].substring(0, end), DataType$.MODULE$.fromJson(type));
        }
        return change.over(optimized);
    }

    private LogicalPlan over(LogicalPlan plan) {
        boolean isNamed = plan instanceof Project || plan instanceof Aggregate;
        LogicalPlan below = isNamed ? (LogicalPlan) plan.children().head() : plan;
        Leaf leaf = leafOf(below);
        if (leaf == null) {
            List children = new ArrayList();
            scala.collection.Iterator all = plan.children().iterator();
            while (all.hasNext()) {
                children.add(over((LogicalPlan) all.next()));
            }
            return (LogicalPlan) withChildren(plan, children);
        }
        LogicalPlan rows = filters(below, leaf);
        if (isNamed) {
            List one = new ArrayList();
            one.add(rows);
            return (LogicalPlan) withChildren(changed(plan, leaf), one);
        }
        // The step above counts on the columns that the filters have passed on.
        return rows == below ? below : new Project(below.output(), rows);
    }

    /** The source below nothing but filters; null: there is none, or nothing changes. */
    private Leaf leafOf(LogicalPlan plan) {
        LogicalPlan at = plan;
        while (at instanceof Filter) {
            at = ((Filter) at).child();
        }
        boolean isOurs = at instanceof LogicalRDD && ((LogicalRDD) at).rdd() instanceof BatchRdd;
        if (!isOurs || ((BatchRdd) ((LogicalRDD) at).rdd()).isStanding()) {
            return null;
        }
        Leaf leaf = new Leaf((LogicalRDD) at);
        return session != null && leaf.rows == at ? null : leaf;
    }

    private LogicalPlan filters(LogicalPlan plan, Leaf leaf) {
        if (!(plan instanceof Filter)) {
            return leaf.rows;
        }
        List child = new ArrayList();
        child.add(filters(((Filter) plan).child(), leaf));
        return (LogicalPlan) withChildren(changed(plan, leaf), child);
    }

    private LogicalPlan changed(LogicalPlan plan, final Leaf leaf) {
        return (LogicalPlan)
                plan.mapExpressions(
                        new AbstractFunction1() {
                            public Object apply(Object one) {
                                return changed((Expression) one, leaf);
                            }
                        });
    }

    private Expression changed(Expression one, Leaf leaf) {
        if (one instanceof GetStructField) {
            GetStructField own = (GetStructField) one;
            String column = leaf.columnOf(own.child());
            if (column != null) {
                return leaf.field(column, own);
            }
        }
        String column = leaf.columnOf(one);
        if (column != null) {
            return leaf.object(column, (JsonToStructs) one);
        }
        if (one instanceof IsNotNull && leaf.json.containsKey(leaf.nameOf(((IsNotNull) one).child()))) {
            String name = leaf.nameOf(((IsNotNull) one).child());
            Expression json = new IsNotNull((Expression) leaf.json.get(name));
            return new Or(json, new IsNotNull((Expression) leaf.rest.get(name)));
        }
        List children = new ArrayList();
        scala.collection.Iterator all = one.children().iterator();
        while (all.hasNext()) {
            children.add(changed((Expression) all.next(), leaf));
        }
        return (Expression) withChildren(one, children);
    }

    private static TreeNode withChildren(TreeNode node, List children) {
        return children.isEmpty() ? node : node.withNewChildren(seq(children));
    }

    private static Seq seq(List all) {
        return CollectionConverters.asScala(all).toSeq();
    }

    /** One place of a plan that reads a source. */
    private final class Leaf {
        /** {id of an attribute: its column}. */
        private final Map names = new HashMap();
        /** {column: the attribute of its objects}, and of its other values. */
        private final Map json = new HashMap();
        private final Map rest = new HashMap();
        private final long source;
        /** The place itself, with more columns where the plan changes. */
        private final LogicalPlan rows;

        Leaf(LogicalRDD place) {
            BatchRdd own = (BatchRdd) place.rdd();
            source = own.source();
            scala.collection.Iterator all = place.output().iterator();
            StructType more = new StructType();
            List columns = new ArrayList();
            while (all.hasNext()) {
                Attribute one = (Attribute) all.next();
                names.put(Long.valueOf(one.exprId().id()), one.name());
                Object type = types.get(key(one.name()));
                if (session != null && type != null) {
                    more = more.add(one.name() + ".json", (DataType) type, true);
                    more = more.add(one.name() + ".rest", one.dataType(), true);
                    columns.add(one.name());
                }
            }
            rows = columns.isEmpty() ? place : Plans.widened(place, more, session);
            int at = place.output().size();
            for (int index = 0; index < columns.size(); index++) {
                json.put(columns.get(index), rows.output().apply(at + 2 * index));
                rest.put(columns.get(index), rows.output().apply(at + 2 * index + 1));
            }
        }

        private String key(String column) {
            return source + "\t" + column;
        }

        private String nameOf(Expression one) {
            boolean isAttribute = one instanceof Attribute;
            return isAttribute ? (String) names.get(Long.valueOf(((Attribute) one).exprId().id())) : null;
        }

        /** The column whose values {@code one} parses; null: it is another expression. */
        String columnOf(Expression one) {
            if (!(one instanceof JsonToStructs)) {
                return null;
            }
            JsonToStructs parse = (JsonToStructs) one;
            if (!(parse.schema() instanceof StructType) || !parse.options().isEmpty()) {
                return null;
            }
            String column = nameOf(bytesOf(parse.child()));
            if (column != null && session == null) {
                note(key(column), (StructType) parse.schema());
            }
            return column != null && json.containsKey(column) ? column : null;
        }

        /** A field of the object. */
        Expression field(String column, GetStructField own) {
            JsonToStructs parse = (JsonToStructs) own.child();
            StructField field = ((StructType) parse.schema()).fields()[own.ordinal()];
            Expression other = new GetStructField(left(column, parse), own.ordinal(), own.name());
            return either(column, of(column, field.name()), other);
        }

        /** The whole object. */
        Expression object(String column, JsonToStructs parse) {
            StructField[] fields = ((StructType) parse.schema()).fields();
            List parts = new ArrayList();
            for (int index = 0; index < fields.length; index++) {
                parts.add(Literal$.MODULE$.apply(fields[index].name()));
                parts.add(of(column, fields[index].name()));
            }
            return either(column, new CreateNamedStruct(seq(parts)), left(column, parse));
        }

        private Expression either(String column, Expression read, Expression other) {
            return new If(new IsNotNull((Expression) json.get(column)), read, other);
        }

        private Expression of(String column, String field) {
            Attribute object = (Attribute) json.get(column);
            int place = ((StructType) object.dataType()).fieldIndex(field);
            return new GetStructField(object, place, new Some(field));
        }

        private Expression left(String column, JsonToStructs parse) {
            List child = new ArrayList();
            child.add(withBytes(parse.child(), (Expression) rest.get(column)));
            return (Expression) withChildren(parse, child);
        }
    }

    private void note(String key, StructType parse) {
        StructField[] fields = ((StructType) parse.asNullable()).fields();
        if (types.containsKey(key) && types.get(key) == null) {
            return;
        }
        StructType all = types.containsKey(key) ? (StructType) types.get(key) : new StructType();
        for (int index = 0; index < fields.length; index++) {
            StructField own = fields[index];
            scala.Option place = all.getFieldIndex(own.name());
            if (place.isEmpty()) {
                all = all.add(own);
            } else if (!all.fields()[((Integer) place.get()).intValue()].equals(own)) {
                types.put(key, null);
                return;
            }
        }
        types.put(key, all);
    }

    /** The column of bytes or text that {@code text} shows as text; null: it is something else. */
    private static Expression bytesOf(Expression text) {
        if (text instanceof Attribute) {
            return text.dataType().equals(StringType$.MODULE$) ? text : null;
        }
        boolean isCast = text instanceof Cast && text.dataType().equals(StringType$.MODULE$);
        if (!isCast && !isDecode(text)) {
            return null;
        }
        Expression bytes = (Expression) text.children().head();
        return bytes.dataType().equals(BinaryType$.MODULE$) ? bytes : null;
    }

    /** Whether it is decode(bytes, 'UTF-8'). */
    private static boolean isDecode(Expression text) {
        if (!(text instanceof StaticInvoke)) {
            return false;
        }
        StaticInvoke call = (StaticInvoke) text;
        boolean isDecode =
                call.functionName().equals("decode")
                        && call.staticObject().getSimpleName().startsWith("StringDecode");
        Object charset = isDecode ? call.arguments().apply(1) : null;
        return charset instanceof Literal && charset.toString().equalsIgnoreCase("UTF-8");
    }

    private static Expression withBytes(Expression text, Expression bytes) {
        if (text instanceof Attribute) {
            return bytes;
        }
        List children = new ArrayList();
        children.add(bytes);
        scala.collection.Iterator all = text.children().iterator();
        all.next();
        while (all.hasNext()) {
            children.add(all.next());
        }
        return (Expression) withChildren(text, children);
    }
}
