/**
 * The form of a server's question.
 */
import { isObject } from '../../api/json';
import type { IJsonObject } from '../../api/json';

/** The schema with each field's title in its description: the form names fields by what is sent. */
export function formOf(schema: IJsonObject): IJsonObject {
  const properties: IJsonObject = {};
  for (const [name, field] of fieldsOf(schema)) {
    const { title, ...rest } = field;
    delete rest['default']; // it is in the field already
    const said =
      typeof rest['description'] === 'string' ? rest['description'] : '';
    const isNew =
      typeof title === 'string' && title.toLowerCase() !== name.toLowerCase();
    const description = [isNew ? title : '', said].filter(Boolean).join(': ');
    properties[name] = description ? { ...rest, description } : rest;
  }
  return { ...schema, properties };
}

/** The values with which a form opens. They are on screen before they are sent. */
export function presets(schema: IJsonObject): IJsonObject {
  const values: IJsonObject = {};
  for (const [name, field] of fieldsOf(schema)) {
    if (field['default'] !== undefined) {
      values[name] = field['default'];
    }
  }
  return values;
}

function fieldsOf({ properties }: IJsonObject): [string, IJsonObject][] {
  return isObject(properties ?? null)
    ? Object.entries(properties as Record<string, IJsonObject>)
    : [];
}
