/**
 * A labeled field for a text that is searched for.
 */
import React from 'react';

export interface ISearchFieldProps {
  name: string;
  value: string;
  placeholder?: string;
  /** Texts that are suggested. */
  choices?: readonly string[];
  isWide?: boolean;
  onChange: (value: string) => void;
  onKeyDown?: (event: React.KeyboardEvent) => void;
}

export const SearchField = React.forwardRef<
  HTMLInputElement,
  ISearchFieldProps
>((props, ref) => {
  const { name, value, placeholder, choices, onChange, onKeyDown } = props;
  const id = React.useId();
  return (
    <label
      className={`jp-AgentBox-search ${props.isWide ? 'jp-mod-wide' : ''}`}
    >
      {name}
      <input
        ref={ref}
        type="search"
        value={value}
        maxLength={200}
        placeholder={placeholder}
        list={choices ? id : undefined}
        onChange={event => {
          onChange(event.target.value);
        }}
        onKeyDown={onKeyDown}
      />
      {choices ? (
        <datalist id={id}>
          {choices.map(choice => (
            <option key={choice} value={choice} />
          ))}
        </datalist>
      ) : null}
    </label>
  );
});
SearchField.displayName = 'SearchField';
